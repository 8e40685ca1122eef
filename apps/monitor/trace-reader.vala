/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sums up a trace in Chrome's format, {"traceEvents": [{"ph": "X", "name": …, "dur": …}, …]}, or only the
 * list, plain or compressed by gzip.
 *
 * Traces come from other programs and from files, and may be large or wrong in any way. The text is read
 * piece by piece, in a thread, and of it only the sums are kept, and the numbers of a timeline: a tree of a
 * text of 39 MB takes 700 MB, which GLib's allocator of slices does not give back. Nothing recurses, and what
 * is kept is bounded: values in one another, names, events, tracks, and the text itself. Of events other than
 * complete ones, values of counters and names of tracks are read; the others are passed over, and so is what
 * is no event.
 *
 * A trace is refused if its text, or a name of an event, is wrong or too large. What only the timeline shows
 * is left out there, or mended, if it is wrong. */

namespace GTorchMonitor {
    /* All events of one name and category. Times are in microseconds. */
    public class ProfileRow : Object {
        public string name { get; construct; }
        public string category { get; construct; }
        public uint64 calls { get; set; }
        public double total { get; set; }
        public double longest { get; set; }
        public uint number; /* in the timeline */
        public uint color;

        public ProfileRow (string name, string category) {
            Object (name: name, category: category);
            color = name.hash ();
        }

        public double mean () {
            return total / calls;
        }
    }

    public class Trace : Object {
        public GLib.ListStore rows = new GLib.ListStore (typeof (ProfileRow));
        public Timeline timeline;
        public Bytes? packed; /* the text, compressed by gzip, if it was to be kept */
    }

    public class TraceReader : JsonReader {
        const uint MAX_DEPTH = 64;              /* values in one another */
        const size_t MAX_NAMES = 64 << 20;      /* bytes of all names, with what a row takes */
        const size_t ROW = 256;

        private size_t n_names;
        private Trace trace = new Trace ();
        private HashTable<string, ProfileRow> by_name =
            new HashTable<string, ProfileRow> (str_hash, str_equal);
        private TimelineBuilder timeline = new TimelineBuilder ();
        private TraceEvent event = new TraceEvent (); /* which is being read */

        public TraceReader (InputStream stream, Cancellable? cancellable) {
            base (stream, cancellable);
        }

        /* Reads all of the stream, which it waits for. */
        public Trace read (bool keeps_text) throws Error {
            MemoryOutputStream? memory = null;
            OutputStream? copy = null;

            if (keeps_text) {
                memory = new MemoryOutputStream.resizable ();
                copy = new ConverterOutputStream (memory, new ZlibCompressor (ZlibCompressorFormat.GZIP, 1));
            }
            begin (copy);
            read_text ();
            if (memory != null) {
                copy.close (cancellable);
                trace.packed = memory.steal_as_bytes ();
            }
            if (trace.rows.get_n_items () == 0)
                throw new ProfileError.INVALID (_("The trace has no events with a duration."));
            trace.timeline = timeline.finish (cancellable);
            return trace;
        }

        /* The names of events are kept whole, or the trace is refused. */
        private void read_member (string key, StringBuilder text) throws Error {
            var is_name = key == "name" || key == "cat" || key == "ph" || key == "dur";

            if (!is_name && key != "ts" && key != "pid" && key != "tid") {
                read_scalar (null);
                return;
            }
            is_lenient = !is_name;
            var c = read_scalar (text.truncate ());
            is_lenient = false;
            var is_number = c == '-' || c >= '0' && c <= '9';
            unowned string given = c == '"' ? text.str : "";
            if (key == "dur")
                event.duration = is_number ? Instant.parse (text.str) : Instant.none ();
            else if (key == "ts")
                event.start = is_number ? Instant.parse (text.str) : Instant.none ();
            else if (key == "ph")
                event.phase = given;
            else if (key == "name")
                event.name = given;
            else if (key == "cat")
                event.category = given;
            else if (key == "pid")
                event.process = is_number ? text.str : given;
            else
                event.thread = is_number ? text.str : given;
        }

        /* Of names and counters, whose phase may come later. */
        private void read_argument (string key, StringBuilder text) throws Error {
            if (event.phase != "" && event.phase != "M" && event.phase != "C") {
                read_scalar (null);
                return;
            }
            is_lenient = true;
            var c = read_scalar (text.truncate ());
            is_lenient = false;
            if (c == '-' || c >= '0' && c <= '9')
                event.add_number (key, double.parse (text.str));
            else if (c == '"' && (key == "name" || key == "labels"))
                event.label = text.str;
        }

        private void end_event () throws Error {
            if (event.phase == "M" || event.phase == "C")
                timeline.add_other (event);
            if (event.phase != "X" || !event.duration.is_duration ())
                return;
            var key = event.category + "\n" + event.name;
            var row = by_name[key];
            if (row == null) {
                n_names += 2 * key.length + ROW;
                if (n_names > MAX_NAMES)
                    throw new ProfileError.INVALID (_("The trace has too many different names: %u."),
                                                    trace.rows.get_n_items ());
                row = new ProfileRow (event.name, event.category);
                by_name[key] = row;
                trace.rows.append (row);
                timeline.add_name (row);
            }
            row.calls++;
            row.total += event.duration.us;
            row.longest = double.max (row.longest, event.duration.us);
            timeline.add (event, row);
        }

        private void read_text () throws Error {
            var is_object = new bool[MAX_DEPTH + 1];  /* what is open, from 1 on */
            var has_value = new bool[MAX_DEPTH + 1];
            var text = new StringBuilder ();
            var key = new StringBuilder ();
            uint depth = 0, events = 0; /* the depth inside the list of events */
            uint arguments = 0;         /* inside those of an event */
            var has_events = false;

            do {
                skip_space ();
                if (depth > 0 && accept (is_object[depth] ? '}' : ']')) {
                    if (events > 0 && depth == events + 1 && is_object[depth])
                        end_event ();
                    else if (depth == events)
                        events = 0;
                    else if (depth == arguments)
                        arguments = 0;
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
                var in_arguments = arguments > 0 && depth == arguments;
                if (is_object[depth]) {
                    is_lenient = in_arguments;
                    read_string (in_event || in_root || in_arguments ? key.truncate () : null);
                    is_lenient = false;
                    skip_space ();
                    expect (':');
                    skip_space ();
                }
                var c = peek ();
                if (c != '{' && c != '[') {
                    if (in_event)
                        read_member (key.str, text);
                    else if (in_arguments)
                        read_argument (key.str, text);
                    else
                        read_scalar (null);
                    continue;
                }
                next ();
                if (depth == MAX_DEPTH)
                    throw new ProfileError.INVALID (_("The trace has more than %u values in one another."),
                                                    MAX_DEPTH);
                if (c == '[' && (depth == 0 || in_root && key.str == "traceEvents")) {
                    events = depth + 1;
                    has_events = true;
                } else if (events > 0 && depth == events) {
                    event.reset ();
                } else if (c == '{' && in_event && key.str == "args") {
                    arguments = depth + 1;
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
