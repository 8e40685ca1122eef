/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What GTorch Monitor reads of traces, which come from others, and what it writes of them. */

using GTorchMonitor;

/* A text that is repeated, in pieces of at most so many bytes. */
class Pieces : InputStream {
    private uint8[] text;
    private size_t most;
    private uint64 n_left;
    private size_t at;

    public Pieces (string text, size_t most, uint64 n_times = 1) {
        this.text = text.data;
        this.most = most;
        n_left = n_times;
    }

    public override ssize_t read (uint8[] buffer, Cancellable? cancellable) throws IOError {
        size_t n = 0;

        while (n < size_t.min (most, buffer.length) && n_left > 0 && text.length > 0) {
            buffer[n++] = text[at++];
            if (at == text.length) {
                at = 0;
                n_left--;
            }
        }
        return (ssize_t) n;
    }

    public override bool close (Cancellable? cancellable) throws IOError {
        return true;
    }
}

/* Several streams, one after the other. */
class Chain : InputStream {
    private GenericArray<InputStream> streams = new GenericArray<InputStream> ();
    private int at;

    public Chain add (InputStream stream) {
        streams.add (stream);
        return this;
    }

    public override ssize_t read (uint8[] buffer, Cancellable? cancellable) throws IOError {
        for (; at < streams.length; at++) {
            var n = streams[at].read (buffer, cancellable);
            if (n != 0)
                return n;
        }
        return 0;
    }

    public override bool close (Cancellable? cancellable) throws IOError {
        return true;
    }
}

InputStream packed (InputStream stream) {
    return new ConverterInputStream (stream, new ZlibCompressor (ZlibCompressorFormat.GZIP, 1));
}

/* Row by row: category, name, calls, total, longest; or the error. */
string sums_of (InputStream stream) {
    try {
        var text = new StringBuilder ();
        var rows = new TraceReader (stream, null).read (false).rows;

        for (uint i = 0; i < rows.get_n_items (); i++) {
            var row = (ProfileRow) rows.get_item (i);
            text.append_printf ("%s/%s %s %g %g;", row.category, row.name, row.calls.to_string (), row.total,
                                row.longest);
        }
        return text.str;
    } catch (Error error) {
        assert_true (error is ProfileError || error is IOError);
        return error.message;
    }
}

string sums (string text) {
    var whole = sums_of (new Pieces (text, 65536));

    foreach (size_t most in new size_t[] { 1, 2, 3, 7 }) /* wherever a piece ends */
        assert_cmpstr (sums_of (new Pieces (text, most)), EQ, whole);
    assert_cmpstr (sums_of (packed (new Pieces (text, 65536))), EQ, whole);
    return whole;
}

const string OP = """{"ph": "X", "name": "op", "cat": "cpu", "dur": 5}""";

void events_are_summed () {
    assert_cmpstr (sums ("[" + OP + "]"), EQ, "cpu/op 1 5 5;");
    assert_cmpstr (sums (" {\"a\": [[{}], 1.5e-3], \"traceEvents\" : [" + OP + "," + OP + """,
        {"ph":"X","dur":0.25,"name":"op","cat":"cpu","args":{"dur":7,"ph":"B","name":[{"ph":"X","dur":9}]}},
        {"ph":"X","dur":1e2,"name":"op"}], "z": null}
        """), EQ, "cpu/op 3 10.25 5;/op 1 100 100;");
}

void other_things_are_passed_over () {
    assert_cmpstr (sums ("""[3, null, true, false, "X", [], {}, [""" + OP + """], {"ph": "X"},
        {"ph": 1, "dur": 1},
        {"ph": "B", "dur": 1}, {"ph": "X", "dur": "long"}, {"ph": "X", "dur": -1}, {"ph": "X", "dur": 1e999},
        {"ph": "X", "dur": [2]}, {"ph": "X", "dur": 1, "name": ["a"], "cat": 3}]"""), EQ, "/ 1 1 1;");
    assert_cmpstr (sums ("""[{"x": {"traceEvents": [""" + OP + "]}}]"), EQ,
                   "The trace has no events with a duration.");
}

void names_are_texts () {
    assert_cmpstr (sums ("""[{"ph":"X","dur":1,"name":"a\n\"\\\/\u00e4\ud83d\ude00ß","cat":"\t"}]"""), EQ,
                   "\t/a\n\"\\/ä😀ß 1 1 1;");
    assert_cmpstr (sums ("""[{"ph":"X","dur":1,"args":"\u0000\b"}]"""), EQ, "/ 1 1 1;"); /* it is not kept */
    /* what a text cannot have here */
    foreach (var escape in new string[] { "\\u0000", "\\ud83d", "\\ude00" })
        assert_cmpstr (sums ("[{\"ph\":\"X\",\"dur\":1,\"name\":\"a" + escape + "b\"}]"), EQ,
                       "/a\ufffdb 1 1 1;");
    assert_cmpstr (sums ("""[{"ph":"X","dur":1,"name":"\ud83d\n\ud83d\ud83d\ude00\ud83d\u0041\ud83d"}]"""),
                   EQ, "/\ufffd\n\ufffd😀\ufffdA\ufffd 1 1 1;");
    assert_cmpstr (sums ("[{\"ph\":\"X\",\"dur\":1,\"name\":\"\xff\"}]"), EQ,
                   "The trace has a name that is no UTF-8.");
}

void what_is_no_trace_is_refused () {
    foreach (var text in new string[] { "5", "\"traceEvents\"", "{}", "null", """{"traceEvents": 5}""",
                                        """{"traceEvents": {"a": []}}""", """{"a": {"traceEvents": []}}""" })
        assert_cmpstr (sums (text), EQ, "This is no trace: it has no list “traceEvents”.");
    assert_cmpstr (sums ("[]"), EQ, "The trace has no events with a duration.");
}

void what_is_no_json_is_refused () {
    foreach (var text in new string[] {
        "]", "[1,]", "[,1]", "[1 2]", "{,}", "{1:2}", "{\"a\"}", "{\"a\":}",
        "{\"a\":1,}", "{\"a\" 1}", "[}", "{]", "[] []", "[]x", "[nul]", "[True]",
        "[NaN]", "[Infinity]", "[-]",
        "[01]", "[1.]", "[.5]", "[1e]", "[1e+]", "[+1]", "[\"\\x\"]", "[\"\\u12g4\"]", "[\"\\ud800\\x\"]",
        "[\"\\ud800\\u12g4\"]", "[\"a\nb\"]", "\x01", "['a']" })
        assert_true (sums (text).has_suffix ("of the text is no JSON."));
    assert_cmpstr (sums ("[1, x]"), EQ, "Byte 4 of the text is no JSON.");
}

void what_is_not_whole_is_refused () {
    foreach (var text in new string[] { "", " ", "\n\t" })
        assert_cmpstr (sums (text), EQ, "The trace is empty.");
    foreach (var text in new string[] { "[", "{", "[1", "[1,", "nul", "tru", "\"a", "[" + OP + "", "[\"\\",
                                        "[\"\\u00", "[\"\\ud800", "[\"\\ud800\\", "[\"\\ud800\\u1",
                                        "-", "1." })
        assert_cmpstr (sums (text), EQ,
                       "The trace ends at byte %d, in the middle of a value.".printf (text.length));
}

void what_is_not_unpacked_as_a_whole_is_refused () {
    try {
        var whole = packed (new Pieces ("[" + string.nfill (70000, ' ') + OP + "]", 65536));
        var buffer = new uint8[4096];
        size_t length;
        whole.read_all (buffer, out length);
        assert_true (length > 40);
        foreach (var kept in new size_t[] { 2, 12, length / 2, length - 1 })
            assert_cmpstr (sums_of (new MemoryInputStream.from_data (buffer[0:kept])), EQ,
                           "The trace is compressed, and its end is missing.");
    } catch (Error error) {
        assert_not_reached ();
    }
}

void depth_is_bounded () {
    var deep = string.nfill (63, '[') + string.nfill (63, ']');

    assert_cmpstr (sums ("[" + OP + "," + deep + "]"), EQ, "cpu/op 1 5 5;");
    assert_cmpstr (sums ("[" + OP + ",[" + deep + "]]"), EQ,
                   "The trace has more than 64 values in one another.");
    foreach (var text in new string[] { "[", "{\"a\":", "[{\"a\":" })
        assert_cmpstr (sums_of (new Pieces (text, 65536, 1000000)), EQ,
                       "The trace has more than 64 values in one another.");
}

void names_are_bounded () {
    var head = "[{\"ph\":\"X\",\"dur\":1,\"name\":\"";

    assert_true (sums_of (new Pieces (head + string.nfill (65536, 'a') + "\"}]", 65536))
        .has_suffix ("aa 1 1 1;"));
    assert_true (sums_of (new Pieces (head + string.nfill (65537, 'a') + "\"}]", 65536))
        .has_prefix ("The trace has a name of more than 64"));
    var text = new StringBuilder ("[");
    for (var i = 0; i < 300000; i++)
        text.append_printf ("%s{\"ph\":\"X\",\"dur\":1,\"name\":\"n%d\"}", i > 0 ? "," : "", i);
    text.append_c (']');
    assert_true (sums_of (new Pieces (text.str, 65536))
        .has_prefix ("The trace has too many different names: 2"));
}

ulong peak () {
    string text;

    try {
        FileUtils.get_contents ("/proc/self/status", out text);
    } catch (Error error) {
        Test.skip ("there is no /proc");
        return 0;
    }
    return ulong.parse (text.split ("VmHWM:")[1].strip ());
}

/* Texts of 300 MB, one of them compressed to less than a thousandth. */
void memory_is_bounded () {
    var before = peak ();
    var events = new Chain ().add (new Pieces ("[" + OP, 65536)).add (new Pieces ("," + OP, 65536, 6000000))
        .add (new Pieces ("]", 65536));

    assert_cmpstr (sums_of (events), EQ, "cpu/op 6000001 3e+07 5;");
    assert_cmpstr (sums_of (packed (new Chain ().add (new Pieces ("[" + OP, 65536))
        .add (new Pieces (" ", 65536, 300000000)).add (new Pieces ("]", 65536)))), EQ, "cpu/op 1 5 5;");
    assert_cmpuint ((uint) (peak () - before), LT, 16 * 1024);
}

void a_cut_file_is_refused () {
    try {
        var stream = new MemoryOutputStream.resizable ();
        stream.splice (packed (new Pieces ("[" + OP + "]", 65536)), CLOSE_TARGET);
        var bytes = stream.steal_as_bytes ();
        for (var n = 2; n < bytes.get_size (); n++)
            assert_true (sums_of (new MemoryInputStream.from_bytes (bytes[0:n])).length > 0);
        assert_cmpstr (sums_of (new MemoryInputStream.from_bytes (bytes)), EQ, "cpu/op 1 5 5;");
    } catch (Error error) {
        assert_not_reached ();
    }
}

/* --- saving --- */

string? save (Bytes text, File file) {
    var loop = new MainLoop ();
    string? failure = null;

    save_trace.begin (text, file, null, (object, result) => {
        try {
            save_trace.end (result);
        } catch (Error error) {
            failure = error.message;
        }
        loop.quit ();
    });
    loop.run ();
    return failure;
}

void texts_are_kept_and_saved () {
    try {
        var folder = File.new_for_path (DirUtils.make_tmp ("traceXXXXXX"));
        var plain = folder.get_child ("a.json"), small = folder.get_child ("a.json.gz");
        var text = "[" + OP + "]\n\n";
        var kept = new TraceReader (new Pieces (text, 7), null).read (true).packed;
        string found;

        assert_null (new TraceReader (new Pieces (text, 7), null).read (false).packed);
        assert_null (save (kept, plain));
        FileUtils.get_contents (plain.get_path (), out found);
        assert_cmpstr (found, EQ, text);
        assert_null (save (kept, small));
        FileUtils.get_contents (small.get_path (), out found);
        assert_cmpuint ((uint8) found[0], EQ, 0x1f);
        assert_cmpstr (sums_of (small.read ()), EQ, "cpu/op 1 5 5;");
        assert_true (save (kept, folder.get_child ("none").get_child ("a.json")) != null);
        /* What cannot be written leaves the former file. */
        assert_true (save (new Bytes ("no gzip".data), plain) != null);
        FileUtils.get_contents (plain.get_path (), out found);
        assert_cmpstr (found, EQ, text);
        plain.delete ();
        small.delete ();
        folder.delete ();
    } catch (Error error) {
        Test.message ("%s", error.message);
        Test.fail ();
    }
}

int main (string[] args) {
    Test.init (ref args);
    Test.add_func ("/GTorch/Monitor/Trace/events_are_summed", events_are_summed);
    Test.add_func ("/GTorch/Monitor/Trace/other_things_are_passed_over", other_things_are_passed_over);
    Test.add_func ("/GTorch/Monitor/Trace/names_are_texts", names_are_texts);
    Test.add_func ("/GTorch/Monitor/Trace/what_is_no_trace_is_refused", what_is_no_trace_is_refused);
    Test.add_func ("/GTorch/Monitor/Trace/what_is_no_json_is_refused", what_is_no_json_is_refused);
    Test.add_func ("/GTorch/Monitor/Trace/what_is_not_whole_is_refused", what_is_not_whole_is_refused);
    Test.add_func ("/GTorch/Monitor/Trace/what_is_not_unpacked_as_a_whole_is_refused",
                   what_is_not_unpacked_as_a_whole_is_refused);
    Test.add_func ("/GTorch/Monitor/Trace/depth_is_bounded", depth_is_bounded);
    Test.add_func ("/GTorch/Monitor/Trace/names_are_bounded", names_are_bounded);
    Test.add_func ("/GTorch/Monitor/Trace/memory_is_bounded", memory_is_bounded);
    Test.add_func ("/GTorch/Monitor/Trace/a_cut_file_is_refused", a_cut_file_is_refused);
    Test.add_func ("/GTorch/Monitor/Trace/texts_are_kept_and_saved", texts_are_kept_and_saved);
    return Test.run ();
}
