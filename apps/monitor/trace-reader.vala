/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sums up a trace in Chrome's format, {"traceEvents": [{"ph": "X", "name": …, "dur": …}, …]}, or only the
 * list, plain or compressed by gzip.
 *
 * Traces come from other programs and from files, and may be large or wrong in any way. The text is read
 * piece by piece, in a thread, and of it only the sums are kept: a tree of a text of 39 MB takes 700 MB,
 * which GLib's allocator of slices does not give back. Nothing recurses, and what is kept is bounded: values
 * in one another, names, and the text itself. Events other than complete ones are passed over, and so is what
 * is no event. */

namespace GTorchMonitor {
    /* All events of one name and category. Times are in microseconds. */
    public class ProfileRow : Object {
        public string name { get; construct; }
        public string category { get; construct; }
        public uint64 calls { get; set; }
        public double total { get; set; }
        public double longest { get; set; }

        public ProfileRow (string name, string category) {
            Object (name: name, category: category);
        }

        public double mean () {
            return total / calls;
        }
    }

    public errordomain ProfileError {
        INVALID
    }

    public class Trace : Object {
        public GLib.ListStore rows = new GLib.ListStore (typeof (ProfileRow));
        public Bytes? packed; /* the text, compressed by gzip, if it was to be kept */
    }

    public class TraceReader : Object {
        const uint MAX_DEPTH = 64;              /* values in one another */
        const size_t MAX_NAME = 65536;          /* bytes */
        const size_t MAX_NAMES = 64 << 20;      /* bytes of all names, with what a row takes */
        const size_t ROW = 256;
        const uint64 MAX_TEXT = 4ULL << 30;     /* bytes */
        const int END = -1;

        private InputStream stream;
        private Cancellable? cancellable;
        private OutputStream? copy;
        private uint8[] buffer = new uint8[65536];
        private size_t at;
        private size_t n;
        private uint64 before; /* bytes before the buffer */
        private size_t n_names;
        private Trace trace = new Trace ();
        private HashTable<string, ProfileRow> by_name =
            new HashTable<string, ProfileRow> (str_hash, str_equal);

        /* The event that is being read. */
        private string phase;
        private string name;
        private string category;
        private double duration;

        public TraceReader (InputStream stream, Cancellable? cancellable) {
            this.stream = stream;
            this.cancellable = cancellable;
        }

        /* Reads all of the stream, which it waits for. */
        public Trace read (bool keeps_text) throws Error {
            MemoryOutputStream? memory = null;

            stream = unpack ();
            if (keeps_text) {
                memory = new MemoryOutputStream.resizable ();
                copy = new ConverterOutputStream (memory, new ZlibCompressor (ZlibCompressorFormat.GZIP, 1));
            }
            read_text ();
            if (memory != null) {
                copy.close (cancellable);
                trace.packed = memory.steal_as_bytes ();
            }
            if (trace.rows.get_n_items () == 0)
                throw new ProfileError.INVALID (_("The trace has no events with a duration."));
            return trace;
        }

        private InputStream unpack () throws Error {
            var buffered = new BufferedInputStream (stream);

            while (buffered.get_available () < 2)
                if (buffered.fill (-1, cancellable) <= 0)
                    return buffered;
            unowned uint8[] begin = buffered.peek_buffer ();
            if (begin[0] != 0x1f || begin[1] != 0x8b)
                return buffered;
            return new ConverterInputStream (buffered, new ZlibDecompressor (ZlibCompressorFormat.GZIP));
        }

        /* --- characters --- */

        private bool fill () throws Error {
            before += n;
            at = 0;
            n = stream.read (buffer, cancellable);
            if (copy != null && n > 0)
                copy.write_all (buffer[0:n], null, cancellable);
            if (before + n > MAX_TEXT)
                throw new ProfileError.INVALID (_("The trace is larger than %s."),
                                                format_size (MAX_TEXT, FormatSizeFlags.IEC_UNITS));
            return n > 0;
        }

        private int peek () throws Error {
            return at < n || fill () ? buffer[at] : END;
        }

        private int next () throws Error {
            var c = peek ();

            if (c != END)
                at++;
            return c;
        }

        private bool accept (char c) throws Error {
            if (peek () != c)
                return false;
            at++;
            return true;
        }

        private void skip_space () throws Error {
            for (;;) {
                var c = peek ();

                if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
                    return;
                at++;
            }
        }

        private ProfileError wrong () {
            return new ProfileError.INVALID (_("Byte %s of the text is no JSON."),
                                             (before + at).to_string ());
        }

        private void expect (char c) throws Error {
            if (!accept (c))
                throw wrong ();
        }

        /* --- values without others in them --- */

        private void keep (StringBuilder? text, char c) throws Error {
            if (text == null)
                return;
            if (text.len >= MAX_NAME)
                throw new ProfileError.INVALID (_("The trace has a name of more than %s."),
                                                format_size (MAX_NAME, FormatSizeFlags.IEC_UNITS));
            text.append_c (c);
        }

        private uint read_unit () throws Error {
            uint unit = 0;

            for (var i = 0; i < 4; i++) {
                var digit = ((char) peek ()).xdigit_value ();

                if (peek () > 0x7f || digit < 0)
                    throw wrong ();
                unit = unit * 16 + digit;
                at++;
            }
            return unit;
        }

        /* Behind \u. A text that is kept ends at a zero byte. */
        private void read_unicode (StringBuilder? text) throws Error {
            var unit = read_unit ();

            if (unit >= 0xd800 && unit < 0xdc00) {
                expect ('\\');
                expect ('u');
                var low = read_unit ();
                if (low < 0xdc00 || low > 0xdfff)
                    throw wrong ();
                unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
            } else if (unit >= 0xdc00 && unit < 0xe000 || unit == 0 && text != null) {
                throw wrong ();
            }
            var bytes = ((unichar) unit).to_string ();
            for (var i = 0; i < bytes.length; i++)
                keep (text, bytes[i]);
        }

        private void read_escape (StringBuilder? text) throws Error {
            const string LETTERS = "\"\\/bfnrt";
            const string MEANINGS = "\"\\/\b\f\n\r\t";

            if (accept ('u')) {
                read_unicode (text);
                return;
            }
            for (var i = 0; i < LETTERS.length; i++)
                if (accept (LETTERS[i])) {
                    keep (text, MEANINGS[i]);
                    return;
                }
            throw wrong ();
        }

        /* At the opening quote. A text that is not kept is not looked at as UTF-8. */
        private void read_string (StringBuilder? text) throws Error {
            expect ('"');
            while (!accept ('"')) {
                var c = next ();

                if (c == '\\')
                    read_escape (text);
                else if (c < 0x20) /* or the end */
                    throw wrong ();
                else
                    keep (text, (char) c);
            }
            if (text != null && !text.str.validate (text.len))
                throw new ProfileError.INVALID (_("The trace has a name that is no UTF-8."));
        }

        private void read_digits (StringBuilder? text) throws Error {
            var c = peek ();

            if (c < '0' || c > '9')
                throw wrong ();
            for (; c >= '0' && c <= '9'; c = peek ()) {
                keep (text, (char) c);
                at++;
            }
        }

        private void read_number (StringBuilder? text) throws Error {
            if (accept ('-'))
                keep (text, '-');
            if (accept ('0'))
                keep (text, '0');
            else
                read_digits (text);
            if (accept ('.')) {
                keep (text, '.');
                read_digits (text);
            }
            if (peek () == 'e' || peek () == 'E') {
                keep (text, (char) next ());
                if (peek () == '+' || peek () == '-')
                    keep (text, (char) next ());
                read_digits (text);
            }
        }

        private void read_word (string word) throws Error {
            for (var i = 0; i < word.length; i++)
                expect (word[i]);
        }

        /* Returns the first character, which tells the kind. */
        private int read_scalar (StringBuilder? text) throws Error {
            var c = peek ();

            if (c == '"')
                read_string (text);
            else if (c == 't')
                read_word ("true");
            else if (c == 'f')
                read_word ("false");
            else if (c == 'n')
                read_word ("null");
            else
                read_number (text);
            return c;
        }

        /* --- the trace --- */

        private void begin_event () {
            phase = name = category = "";
            duration = double.NAN;
        }

        private void read_member (string key, StringBuilder text) throws Error {
            if (key != "ph" && key != "name" && key != "cat" && key != "dur") {
                read_scalar (null);
                return;
            }
            var c = read_scalar (text.truncate ());
            if (key == "dur")
                duration = c == '-' || c >= '0' && c <= '9' ? double.parse (text.str) : double.NAN;
            else if (key == "ph")
                phase = c == '"' ? text.str : "";
            else if (key == "name")
                name = c == '"' ? text.str : "";
            else
                category = c == '"' ? text.str : "";
        }

        private void end_event () throws Error {
            if (phase != "X" || !(duration >= 0) || duration.is_infinity () != 0)
                return;
            var key = category + "\n" + name;
            var row = by_name[key];
            if (row == null) {
                n_names += 2 * key.length + ROW;
                if (n_names > MAX_NAMES)
                    throw new ProfileError.INVALID (_("The trace has too many different names: %u."),
                                                    trace.rows.get_n_items ());
                row = new ProfileRow (name, category);
                by_name[key] = row;
                trace.rows.append (row);
            }
            row.calls++;
            row.total += duration;
            row.longest = double.max (row.longest, duration);
        }

        private void read_text () throws Error {
            var is_object = new bool[MAX_DEPTH + 1];  /* what is open, from 1 on */
            var has_value = new bool[MAX_DEPTH + 1];
            var text = new StringBuilder ();
            var key = new StringBuilder ();
            uint depth = 0, events = 0; /* the depth inside the list of events */
            var has_events = false;

            do {
                skip_space ();
                if (depth > 0 && accept (is_object[depth] ? '}' : ']')) {
                    if (events > 0 && depth == events + 1 && is_object[depth])
                        end_event ();
                    else if (depth == events)
                        events = 0;
                    depth--;
                    continue;
                }
                if (depth > 0 && has_value[depth]) {
                    expect (',');
                    skip_space ();
                }
                has_value[depth] = true;
                var in_event = events > 0 && depth == events + 1 && is_object[depth];
                var in_root = depth == 1 && is_object[1];
                if (is_object[depth]) {
                    read_string (in_event || in_root ? key.truncate () : null);
                    skip_space ();
                    expect (':');
                    skip_space ();
                }
                var c = peek ();
                if (c != '{' && c != '[') {
                    if (in_event)
                        read_member (key.str, text);
                    else
                        read_scalar (null);
                    continue;
                }
                at++;
                if (depth == MAX_DEPTH)
                    throw new ProfileError.INVALID (_("The trace has more than %u values in one another."),
                                                    MAX_DEPTH);
                if (c == '[' && (depth == 0 || in_root && key.str == "traceEvents")) {
                    events = depth + 1;
                    has_events = true;
                } else if (events > 0 && depth == events) {
                    begin_event ();
                }
                depth++;
                is_object[depth] = c == '{';
                has_value[depth] = false;
            } while (depth > 0);
            skip_space ();
            if (peek () != END)
                throw wrong ();
            if (!has_events)
                throw new ProfileError.INVALID (_("This is no trace: it has no list “traceEvents”."));
        }
    }

    public async Trace read_trace (InputStream stream, bool keeps_text,
                                   Cancellable? cancellable) throws Error {
        SourceFunc resume = read_trace.callback;
        Trace? trace = null;
        Error? failure = null;

        new Thread<bool> ("trace", () => {
            try {
                trace = new TraceReader (stream, cancellable).read (keeps_text);
            } catch (Error error) {
                failure = error;
            }
            Idle.add ((owned) resume);
            return true;
        });
        yield;
        if (failure != null)
            throw failure;
        return trace;
    }

    /* Writes a text that was kept: compressed, if the name of the file ends in .gz. What the file had before
     * stays if it cannot be written. */
    public async void save_trace (Bytes packed, File file, Cancellable? cancellable) throws Error {
        InputStream source = new MemoryInputStream.from_bytes (packed);

        if (!(file.get_basename () ?? "").has_suffix (".gz"))
            source = new ConverterInputStream (source, new ZlibDecompressor (ZlibCompressorFormat.GZIP));
        var target = yield file.replace_async (null, false, FileCreateFlags.NONE, Priority.DEFAULT,
                                               cancellable);
        Error? failure = null;
        try {
            yield target.splice_async (source, OutputStreamSpliceFlags.CLOSE_SOURCE, Priority.DEFAULT,
                                       cancellable);
            yield target.close_async (Priority.DEFAULT, cancellable);
        } catch (Error error) {
            failure = error;
        }
        if (failure == null)
            return;
        var cancelled = new Cancellable ();
        cancelled.cancel (); /* closing does not put the file into its place then */
        try {
            yield target.close_async (Priority.DEFAULT, cancelled);
        } catch (Error error) {
            debug ("%s", error.message);
        }
        throw failure;
    }
}
