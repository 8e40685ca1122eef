/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The events of a trace by threads and streams, over time, and its counters. It is made while the trace is
 * read, in the thread that reads, and does not change afterwards. */

namespace GTorchMonitor {
    public class TraceProcess {
        public string id;
        public string? name;
        public string? labels;
        public double order;
        public uint number;

        public string title () {
            if (name != null && labels != null)
                return "%s, %s".printf (name, labels);
            if (name != null || labels != null)
                return name ?? labels;
            return id != "" ? _("Process %s").printf (id) : _("Events");
        }
    }

    public class Timeline : Object {
        public GenericArray<Track> tracks = new GenericArray<Track> ();     /* those of a process together */
        public GenericArray<ProfileRow> rows = new GenericArray<ProfileRow> (); /* by the numbers of names */
        public int64 duration;   /* in nanoseconds, of all of it; the first event begins at 0 */
        public uint64 n_shown;   /* events that are in it */
        public uint64 n_omitted; /* and those for which it has no place */
    }

    public class TimelineBuilder {
        public const uint MAX_EVENTS = 2000000; /* with the values of counters */
        public const uint MAX_TRACKS = 4096;    /* as many processes, threads and counters */
        const size_t MAX_NAMES = 16 << 20;      /* bytes of names of tracks */

        private Timeline timeline = new Timeline ();
        private HashTable<string, TraceProcess> processes =
            new HashTable<string, TraceProcess> (str_hash, str_equal);
        private HashTable<string, Track> tracks = new HashTable<string, Track> (str_hash, str_equal);
        private size_t n_names;
        private uint n_events;
        private int64 begin = int64.MAX;
        private int64 end = int64.MIN;

        /* The track of the last event, which mostly is that of the next one. */
        private string last_process = "";
        private string last_thread = "";
        private EventTrack? last;

        private bool take_name (string name) {
            n_names += name.length;
            return n_names <= MAX_NAMES; /* those that come later are not kept */
        }

        private TraceProcess? find_process (string id) {
            var process = processes[id];

            if (process == null && processes.length < MAX_TRACKS && take_name (id)) {
                process = new TraceProcess () { id = id, number = processes.length };
                processes[id] = process;
            }
            return process;
        }

        private bool add_track (Track track, string key, TraceEvent event, string id) {
            track.process = tracks.length < MAX_TRACKS ? find_process (event.process) : null;
            track.id = id;
            track.number = tracks.length;
            if (track.process == null || !take_name (key))
                return false;
            tracks[key] = track;
            return true;
        }

        private EventTrack? find_thread (TraceEvent event) {
            if (last != null && event.process == last_process && event.thread == last_thread)
                return last;
            var key = "%s\n%s".printf (event.process, event.thread);
            var track = tracks[key] as EventTrack;
            if (track == null) {
                track = new EventTrack ();
                if (!add_track (track, key, event, event.thread))
                    return null;
            }
            last_process = event.process;
            last_thread = event.thread;
            last = track;
            return track;
        }

        private CounterTrack? find_counter (TraceEvent event, string name) {
            var key = "%s\n%s\n%s".printf (event.process, event.name, name);
            var track = tracks[key] as CounterTrack;

            if (track == null) {
                track = new CounterTrack () { key = name };
                if (!add_track (track, key, event, event.name))
                    return null;
            }
            return track;
        }

        public void add_name (ProfileRow row) {
            row.number = timeline.rows.length;
            timeline.rows.add (row);
        }

        /* An event with a duration. */
        public void add (TraceEvent event, ProfileRow row) {
            var has_place = n_events < MAX_EVENTS && event.start.is_placed () && event.duration.is_placed ();
            var track = has_place ? find_thread (event) : null;

            if (track == null) {
                timeline.n_omitted++;
                return;
            }
            var event_end = event.start.plus (event.duration);
            track.add (event.start.ns, event_end - event.start.ns, row.number);
            count (event.start.ns, event_end);
        }

        private void count (int64 start, int64 event_end) {
            n_events++;
            timeline.n_shown++;
            begin = int64.min (begin, start);
            end = int64.max (end, event_end);
        }

        /* A name of a process or thread, or a value of a counter. */
        public void add_other (TraceEvent event) {
            if (event.phase == "C") {
                add_values (event);
                return;
            }
            var is_of_process = event.name.has_prefix ("process_");
            TraceProcess? process = is_of_process ? find_process (event.process) : null;
            Track? track = event.name.has_prefix ("thread_") ? find_thread (event) : null;
            var name = event.label != "" && take_name (event.label) ? event.label : null;
            if (process != null && event.name == "process_name")
                process.name = name;
            else if (process != null && event.name == "process_labels")
                process.labels = name;
            else if (track != null && event.name == "thread_name")
                track.name = name;
            for (var i = 0; i < event.keys.length; i++)
                if (event.keys[i] == "sort_index" && process != null)
                    process.order = event.numbers[i];
                else if (event.keys[i] == "sort_index" && track != null)
                    track.order = event.numbers[i];
        }

        private void add_values (TraceEvent event) {
            for (var i = 0; i < event.keys.length; i++) {
                var has_place = n_events < MAX_EVENTS && event.start.is_placed ();
                var track = has_place ? find_counter (event, event.keys[i]) : null;

                if (track == null) {
                    timeline.n_omitted++;
                    continue;
                }
                track.add (event.start.ns, event.numbers[i]);
                count (event.start.ns, event.start.ns);
            }
        }

        private static int compare (double a, double b) {
            return a < b ? -1 : a > b ? 1 : 0;
        }

        /* Processes and threads as the trace orders them, or as they come; counters first. */
        private static int compare_tracks (Track a, Track b) {
            var result = compare (a.process.order, b.process.order);

            if (result == 0)
                result = compare (a.process.number, b.process.number);
            if (result == 0)
                result = compare ((a is EventTrack) ? 1 : 0, (b is EventTrack) ? 1 : 0);
            if (result == 0)
                result = compare (a.order, b.order);
            return result != 0 ? result : compare (a.number, b.number);
        }

        public Timeline finish (Cancellable? cancellable) throws Error {
            foreach (unowned var track in tracks.get_values ()) {
                if (track.starts.length == 0)
                    continue;
                if (cancellable != null)
                    cancellable.set_error_if_cancelled ();
                var n = track.finish (begin);
                timeline.n_omitted += n;
                timeline.n_shown -= n;
                timeline.tracks.add (track);
            }
            timeline.tracks.sort (compare_tracks);
            if (timeline.tracks.length > 0)
                timeline.duration = end - begin;
            return timeline;
        }
    }
}
