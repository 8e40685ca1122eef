/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The timeline of a trace: what is read for it, how it is ordered, and what of it is drawn. */

using GTorchMonitor;

/* A text, with another one repeated in its middle. */
class Repeated : InputStream {
    private string[] parts;
    private uint n_left;
    private int part;
    private int at;

    public Repeated (string head, string middle, uint n_times, string tail) {
        parts = { head, middle, tail };
        n_left = n_times;
    }

    public override ssize_t read (uint8[] buffer, Cancellable? cancellable) throws IOError {
        size_t n = 0;

        while (n < buffer.length && part < parts.length) {
            if (at < parts[part].length) {
                buffer[n++] = parts[part][at++];
                continue;
            }
            at = 0;
            if (part != 1 || --n_left == 0)
                part++;
        }
        return (ssize_t) n;
    }

    public override bool close (Cancellable? cancellable) throws IOError {
        return true;
    }
}

Timeline read_stream (InputStream stream) {
    try {
        return new TraceReader (stream, null).read (false).timeline;
    } catch (Error error) {
        Test.message ("%s", error.message);
        assert_not_reached ();
    }
}

Timeline timeline_of (string events) {
    return read_stream (new MemoryInputStream.from_data (("[" + events + "]").data));
}

string at (string start, string duration, string name = "op") {
    return """{"ph":"X","ts":%s,"dur":%s,"name":"%s"}""".printf (start, duration, name);
}

/* Of each lane: name, start and end. */
string lanes (EventTrack track, Timeline timeline) {
    var text = new StringBuilder ();

    for (uint lane = 0; lane < track.n_lanes; lane++) {
        text.append (lane > 0 ? "| " : "");
        track.each_bar (lane, 0, timeline.duration + 1, 0, (bar) => {
            assert_cmpuint (bar.n_events, EQ, 1);
            assert_cmpuint (track.lane_of (bar.event), EQ, lane);
            text.append_printf ("%s %s-%s ", timeline.rows[track.names[bar.event]].name,
                                bar.start.to_string (), bar.end.to_string ());
        });
    }
    return text.str;
}

string tracks (Timeline timeline) {
    var text = new StringBuilder ();

    foreach (unowned var track in timeline.tracks) {
        text.append_printf ("%s/%s: ", track.process.title (), track.title ());
        if (track is EventTrack) {
            text.append (lanes ((EventTrack) track, timeline));
            continue;
        }
        var counter = (CounterTrack) track;
        for (var i = 0; i < counter.starts.length; i++)
            text.append_printf ("%g@%s ", counter.values[i], counter.starts[i].to_string ());
    }
    text.append_printf ("%s of %s", timeline.n_shown.to_string (),
                        (timeline.n_shown + timeline.n_omitted).to_string ());
    return text.str;
}

void events_are_nested_or_apart () {
    assert_cmpstr (tracks (timeline_of (at ("10", "5", "a") + "," + at ("15", "1", "b"))), EQ,
                   "Events/Events: a 0-5000 b 5000-6000 2 of 2");
    assert_cmpstr (tracks (timeline_of (string.join (",", at ("2", "3", "leaf"), at ("1", "9", "root"),
                                              at ("1", "5", "child"), at ("6", "4", "child"),
                                              at ("10", "0", "point"), at ("12", "2", "root")))), EQ,
                   "Events/Events: root 0-9000 point 9000-9000 root 11000-13000 "
                   + "| child 0-5000 child 5000-9000 | leaf 1000-4000 6 of 6");
    /* What overlaps is below, though it ends later. */
    assert_cmpstr (tracks (timeline_of (string.join (",", at ("0", "3", "a"), at ("2", "3", "b"),
                                                     at ("4", "1", "c")))), EQ,
                   "Events/Events: a 0-3000 | b 2000-5000 | c 4000-5000 3 of 3");
    assert_cmpstr (tracks (timeline_of (string.join (",", at ("0", "3", "a"), at ("2", "3", "b"),
                                                     at ("4", "2", "c")))), EQ,
                   "Events/Events: a 0-3000 c 4000-6000 | b 2000-5000 3 of 3");
    assert_cmpstr (tracks (timeline_of (at ("1", "0", "a") + "," + at ("1", "0", "b"))), EQ,
                   "Events/Events: a 0-0 b 0-0 2 of 2");
}

void tracks_are_those_of_the_trace () {
    assert_cmpstr (tracks (timeline_of ("""
        {"ph":"X","pid":7,"tid":"b","ts":1,"dur":1,"name":"x"}, {"ph":"X","pid":"GPU","tid":3,"ts":1,"dur":1},
        {"ph":"M","pid":7,"tid":"b","name":"thread_name","args":{"name":"main"}},
        {"args":{"name":"train.py"},"ph":"M","pid":7,"name":"process_name"},
        {"ph":"M","pid":7,"name":"process_labels","args":{"labels":"CPU"}},
        {"ph":"M","pid":9,"tid":1,"name":"thread_name","args":{"name":"without events"}},
        {"ph":"X","pid":7,"tid":4,"ts":2,"dur":1,"name":"y"}""")), EQ,
        "train.py, CPU/main: x 0-1000 train.py, CPU/Thread 4: y 1000-2000 "
        + "Process GPU/Thread 3:  0-1000 3 of 3");
    assert_cmpstr (tracks (timeline_of ("""
        {"ph":"X","pid":1,"tid":1,"ts":1,"dur":1}, {"ph":"X","pid":1,"tid":2,"ts":1,"dur":1},
        {"ph":"X","pid":2,"tid":1,"ts":1,"dur":1},
        {"ph":"M","pid":2,"name":"process_sort_index","args":{"sort_index":-1}},
        {"ph":"M","pid":1,"tid":1,"name":"thread_sort_index","args":{"sort_index":5}}""")), EQ,
        "Process 2/Thread 1:  0-1000 Process 1/Thread 2:  0-1000 Process 1/Thread 1:  0-1000 3 of 3");
}

void counters_are_tracks () {
    assert_cmpstr (tracks (timeline_of ("""{"ph":"X","pid":1,"ts":1,"dur":1,"args":{"bytes":3}},
        {"ph":"C","pid":1,"ts":3,"name":"Memory","args":{"bytes":70}},
        {"args":{"bytes":50,"text":"a","list":[1],"inner":{"bytes":9}},
            "ph":"C","pid":1,"ts":2,"name":"Memory"},
        {"ph":"C","pid":1,"ts":2,"name":"Load","args":{"value":0.5,"other":1e999}},
        {"ph":"C","pid":1,"name":"Load","args":{"value":0.5}}""")), EQ,
        "Process 1/Memory (bytes): 50@1000 70@2000 Process 1/Load: 0.5@1000 "
        + "Process 1/Events:  0-1000 4 of 5");
    var counter = new CounterTrack ();
    var values = new double[10000];
    for (var i = 0; i < values.length; i++) {
        values[i] = Test.rand_double ();
        counter.add (5 + 2 * i, values[i]);
    }
    counter.finish (5);
    for (var i = 0; i < 200; i++) {
        var from = Test.rand_int_range (0, values.length - 1);
        var to = Test.rand_int_range (from + 1, values.length);
        var largest = values[from];
        for (var j = from; j < to; j++)
            largest = double.max (largest, values[j]);
        assert_cmpfloat (counter.largest (from, to), EQ, largest);
        assert_cmpfloat (counter.value_at (2 * from), EQ, values[from]);
        assert_cmpfloat (counter.value_at (2 * from + 1), EQ, values[from]);
    }
    assert_true (counter.value_at (-1).is_nan ());
    assert_cmpfloat (counter.value_at (int64.MAX - 1), EQ, values[values.length - 1]);
}

void times_are_exact () {
    assert_cmpstr (tracks (timeline_of (at ("1700000000000000.001", "0.999", "a") + ","
                                 + at ("1700000000000001", "2e0", "b"))), EQ,
                   "Events/Events: a 0-999 b 999-2999 2 of 2");
    /* Not even a thousandth of a nanosecond is lost on the way to the end. */
    assert_cmpstr (tracks (timeline_of (at ("0", "3.0005", "root") + "," + at ("0.0009", "3", "a") + ","
                                 + at ("3.0009", "1", "b"))), EQ,
                   "Events/Events: root 0-3000 b 3000-4000 | a 0-3000 3 of 3");
    assert_cmpstr (tracks (timeline_of (at ("-1.0005", "1", "a") + "," + at ("-0", "1", "b"))), EQ,
                   "Events/Events: a 0-1000 b 1001-2001 2 of 2");
}

void what_has_no_place_is_counted () {
    assert_cmpstr (tracks (timeline_of (string.join (",", at ("1", "1"), at ("\"1\"", "1"), at ("1e999", "1"),
                                              at ("5e15", "1"), at ("1", "5e15"), at ("null", "1"),
                                              """{"ph":"X","dur":1},{"ph":"X","ts":[1],"dur":1}"""))), EQ,
                   "Events/Events: op 0-1000 1 of 8");
    assert_cmpstr (tracks (timeline_of ("""{"ph":"X","dur":1}""")), EQ, "0 of 1");
    assert_cmpstr (tracks (timeline_of (at ("-3e15", "3e15", "a") + "," + at ("3e15", "3e15", "b"))), EQ,
                   "Events/Events: a 0-3000000000000000000 b 6000000000000000000-9000000000000000000 2 of 2");
}

void wrong_names_are_mended () {
    var long_name = string.nfill (70000, 'a');
    var timeline = timeline_of ("""
        {"args":{"name":"\u0000","%s":1,"a":"%s"},"ph":"X","dur":1,"ts":1,"pid":"\u0000b"},
        {"ph":"M","name":"thread_name","pid":"\u0000b","args":{"name":"%s"}},
        {"ph":"X","ts":1,"dur":1,"tid":"%s"}, {"ph":"M","name":"process_name","args":{"name":"%s"}}"""
        .printf (long_name, "\xff", long_name, long_name, "a\xff"));

    assert_cmpuint (timeline.tracks.length, EQ, 2);
    assert_cmpstr (timeline.tracks[0].process.title (), EQ, "Process \xef\xbf\xbd" + "b");
    assert_cmpuint (timeline.tracks[0].title ().length, EQ, 65536);
    assert_cmpstr (timeline.tracks[1].process.title (), EQ, "a\xef\xbf\xbd");
    assert_cmpuint (timeline.tracks[1].id.length, EQ, 65536);
}

/* Whatever the order and the overlaps: lanes have no overlaps, and what contains something is above it. */
void lanes_are_right () {
    for (var round = 0; round < 50; round++) {
        var track = new EventTrack ();
        var n = Test.rand_int_range (1, 200);
        for (uint i = 0; i < n; i++)
            track.add (Test.rand_int_range (0, 300), Test.rand_int_range (0, 40), i);
        assert_cmpuint (track.finish (0), EQ, 0);
        var seen = new bool[n];
        for (uint lane = 0; lane < track.n_lanes; lane++) {
            int64 before = 0;
            track.each_bar (lane, 0, 1000, 0, (bar) => {
                assert_true (bar.start >= before && bar.n_events == 1);
                before = bar.end;
                assert_false (seen[track.names[bar.event]]);
                seen[track.names[bar.event]] = true;
                is_below_what_contains_it (track, bar, n);
            });
        }
        foreach (var is_seen in seen)
            assert_true (is_seen);
    }
}

void is_below_what_contains_it (EventTrack track, Bar bar, uint n) {
    var parent = track.parent (bar.event);
    var has_parent = false;

    for (uint i = 0; i < n; i++) {
        var start = track.starts[i], end = track.end_of (i);
        if (start > bar.start || end < bar.end || end == bar.start || start == bar.start && end == bar.end)
            continue;
        assert_true (track.lane_of (i) < track.lane_of (bar.event));
        has_parent = true;
    }
    assert_true (parent >= 0 || !has_parent);
    assert_true (parent < 0 || track.starts[parent] <= bar.start && track.end_of ((uint) parent) >= bar.end);
}

void events_have_neighbours () {
    var track = new EventTrack ();
    uint n = 0;

    foreach (var start in new int64[] { 0, 20, 2, 5, 21 })
        track.add (start, start % 20 == 0 ? 10 : 3, n++);
    track.finish (0); /* 0, 20 | 2, 5, 21 */
    assert_true (track.neighbour (0, 1) == 1 && track.neighbour (3, 1) == 4);
    foreach (uint first in new uint[] { 0, 2 })
        assert_true (track.neighbour (first, -1) == -1);
    foreach (uint last in new uint[] { 1, 4 })
        assert_true (track.neighbour (last, 1) == -1);
    assert_true (track.parent (0) == -1 && track.parent (3) == 0 && track.parent (4) == 1);
    assert_true (track.child (0) == 2 && track.child (1) == 4 && track.child (2) == -1);
}

/* A million events of 3 ns, with gaps of 1 ns, and one of 100 ns in the middle. */
EventTrack million () {
    var track = new EventTrack ();

    for (uint i = 0; i < 1000000; i++)
        track.add (4 * (int64) i + (i > 500000 ? 100 : 0), i == 500000 ? 100 : 3, i);
    assert_cmpuint (track.finish (0), EQ, 0);
    return track;
}

void short_events_are_united () {
    var track = million ();

    foreach (var pixel in new double[] { 1, 3, 3.5, 5, 100, 100.5, 4000, 1e7 }) {
        uint n_bars = 0, n_events = 0;
        int64 before = 0;
        track.each_bar (0, 0, 5000000, pixel, (bar) => {
            assert_cmpuint (bar.event, EQ, n_events);
            assert_true (bar.start >= before && (bar.n_events == 1 || bar.end - bar.start < pixel * 1e7));
            before = bar.end;
            n_events += bar.n_events;
            n_bars++;
        });
        assert_cmpuint (n_events, EQ, 1000000);
        assert_cmpuint (n_bars, EQ, pixel <= 3 ? 1000000 : pixel <= 100 ? 3 : 1);
    }
    /* What is far enough away stays apart. */
    var points = new EventTrack ();
    foreach (var start in new int64[] { 0, 5, 19, 20, 41, 55, 75 })
        points.add (start, 1, 0);
    points.finish (0);
    var text = new StringBuilder ();
    points.each_bar (0, 0, 100, 10, (bar) => text.append_printf ("%u+%u ", bar.event, bar.n_events));
    assert_cmpstr (text.str, EQ, "0+4 4+2 6+1 ");
}

/* Events that take a quarter of the time, then all of it, then three quarters. */
void shades_tell_how_busy_it_is () {
    var track = new EventTrack ();
    var text = new StringBuilder ();

    for (var i = 0; i < 300; i++)
        track.add (10 * i, i < 100 ? 2 : i < 200 ? 10 : 7, 0);
    track.finish (0);
    track.each_bar (0, 0, 3000, 100, (bar) => {
        track.each_shade (bar, 100, (start, end, shade) => {
            text.append_printf ("%d-%d: %d ", (int) start, (int) end, shade);
        });
    });
    assert_cmpstr (text.str, EQ, "0-1000: 1 1000-2000: 4 2000-2997: 3 ");
    var points = new EventTrack ();
    for (var i = 0; i < 9; i++)
        points.add (i, 0, 0);
    points.finish (0);
    text.truncate ();
    points.each_bar (0, 0, 9, 2, (bar) => {
        points.each_shade (bar, 2, (start, end, shade) => {
            text.append_printf ("%d-%d: %d ", (int) start, (int) end, shade);
        });
    });
    assert_cmpstr (text.str, EQ, "0-8: 1 ");
}

/* The part of the view that stays in it does not change while it is moved; and little is looked at. */
void a_part_is_found () {
    var track = million ();

    foreach (var from in new int64[] { 0, 1, 2, 3, 4, 1999999, 2000050, 2000100, 4000095 }) {
        uint first = uint.MAX, last = 0;
        track.each_bar (0, from, from + 10, 1, (bar) => {
            first = uint.min (first, bar.event);
            last = bar.event;
        });
        assert_true (first != uint.MAX && track.end_of (first) > from && track.starts[last] < from + 10);
        assert_true (first == 0 || track.end_of (first - 1) <= from);
        assert_true (last == 999999 || track.starts[last + 1] >= from + 10);
    }
    var text = new StringBuilder (), moved = new StringBuilder ();
    track.each_bar (0, 1990000, 2010000, 7.3, (bar) => text.append_printf ("%u ", bar.event + bar.n_events));
    track.each_bar (0, 1990011, 2010000, 7.3, (bar) => moved.append_printf ("%u ", bar.event + bar.n_events));
    assert_cmpstr (text.str, EQ, moved.str);
    assert_cmpstr (text.str, EQ, "500000 500001 502475 ");
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

void events_are_bounded () {
    var before = peak ();
    var timeline = read_stream (new Repeated ("[" + at ("1", "5", "first"), "," + at ("2", "0"), 2500000,
                                              "," + at ("3", "1", "last") + "]"));

    assert_true (timeline.n_shown == 2000000 && timeline.n_omitted == 500002);
    var track = (EventTrack) timeline.tracks[0];
    assert_true (track.n_lanes == 2 && timeline.rows.length == 3 && timeline.duration == 5000);
    assert_cmpuint ((uint) (peak () - before), LT, 160 * 1024);
    /* Of those in one another, the outer ones. */
    timeline = read_stream (new Repeated ("[" + at ("1", "5"), "," + at ("1", "5"), 999, "]"));
    assert_true (timeline.n_shown == 255 && timeline.n_omitted == 745);
    assert_cmpuint (((EventTrack) timeline.tracks[0]).n_lanes, EQ, 255);
}

void tracks_are_bounded () {
    var text = new StringBuilder ();

    for (var i = 0; i < 5000; i++)
        text.append_printf ("""%s{"ph":"X","ts":%d,"dur":1,"pid":%d}""", i > 0 ? "," : "", i, i);
    var timeline = timeline_of (text.str);
    assert_true (timeline.tracks.length == 4096 && timeline.n_shown == 4096 && timeline.n_omitted == 904);
    text.truncate ();
    for (var i = 0; i < 1000; i++)
        text.append_printf ("""{"ph":"M","name":"thread_name","tid":%d,"args":{"name":"%s"}},
            {"ph":"C","ts":1,"name":"c","tid":%d,"args":{"%d%s":1}},""",
            i, string.nfill (60000, 'a'), i, i, string.nfill (60000, 'b'));
    timeline = timeline_of (text.str + at ("1", "1"));
    size_t n = 0;
    foreach (unowned var track in timeline.tracks)
        n += track.title ().length;
    assert_true (timeline.tracks.length > 100 && n < 17 * 1024 * 1024);
}

void times_are_written () {
    int64[] steps = {};
    double[] leasts = { 0, 1, 1.5, 3, 6, 11, 49.9, 50, 51, 1e9, 1.1e9, 1e30 };
    int64[] expected = { 1, 1, 2, 5, 10, 20, 50, 50, 100, 1000000000, 2000000000, 1000000000000000000 };

    foreach (var least in leasts)
        steps += tick_step (least);
    for (var i = 0; i < steps.length; i++)
        assert_true (steps[i] == expected[i]);
    assert_cmpstr (tick_text (0, 5, 20), EQ, "0 ns");
    assert_cmpstr (tick_text (1500, 500, 2000), EQ, "1.5 µs");
    assert_cmpstr (tick_text (20000000, 5000000, 35000000), EQ, "20 ms");
    assert_cmpstr (tick_text (5000000, 5000000, 3000000000), EQ, "0.005 s");
    assert_cmpstr (exact_text (0), EQ, "0 ns");
    assert_cmpstr (exact_text (999), EQ, "999 ns");
    assert_cmpstr (exact_text (1000), EQ, "1 µs");
    assert_cmpstr (exact_text (12345678), EQ, "12.345678 ms");
    assert_cmpstr (exact_text (100000000000), EQ, "100 s");
    assert_cmpstr (exact_text (5000000001), EQ, "5.000000001 s");
}

int main (string[] args) {
    Test.init (ref args);
    Test.add_func ("/GTorch/Monitor/Timeline/events_are_nested_or_apart", events_are_nested_or_apart);
    Test.add_func ("/GTorch/Monitor/Timeline/tracks_are_those_of_the_trace", tracks_are_those_of_the_trace);
    Test.add_func ("/GTorch/Monitor/Timeline/counters_are_tracks", counters_are_tracks);
    Test.add_func ("/GTorch/Monitor/Timeline/times_are_exact", times_are_exact);
    Test.add_func ("/GTorch/Monitor/Timeline/what_has_no_place_is_counted", what_has_no_place_is_counted);
    Test.add_func ("/GTorch/Monitor/Timeline/wrong_names_are_mended", wrong_names_are_mended);
    Test.add_func ("/GTorch/Monitor/Timeline/lanes_are_right", lanes_are_right);
    Test.add_func ("/GTorch/Monitor/Timeline/events_have_neighbours", events_have_neighbours);
    Test.add_func ("/GTorch/Monitor/Timeline/short_events_are_united", short_events_are_united);
    Test.add_func ("/GTorch/Monitor/Timeline/shades_tell_how_busy_it_is", shades_tell_how_busy_it_is);
    Test.add_func ("/GTorch/Monitor/Timeline/a_part_is_found", a_part_is_found);
    Test.add_func ("/GTorch/Monitor/Timeline/events_are_bounded", events_are_bounded);
    Test.add_func ("/GTorch/Monitor/Timeline/tracks_are_bounded", tracks_are_bounded);
    Test.add_func ("/GTorch/Monitor/Timeline/times_are_written", times_are_written);
    return Test.run ();
}
