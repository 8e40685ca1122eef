/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The tracks of a timeline: events of a thread or stream, and values of a counter. A trace may have millions
 * of them, so they are numbers in arrays, ordered so that what is seen is found by halving, and drawing takes
 * as long as there are pixels. Times are in nanoseconds. */

namespace GTorchMonitor {
    public abstract class Track {
        public TraceProcess process;
        public string id; /* the thread's, or the counter's name */
        public string? name;
        public double order;
        public uint number;
        internal int64[] starts = {};

        /* Puts things in order. Returns how many have no place. */
        public abstract uint finish (int64 begin);
        public abstract string title ();

        /* Of two that start at the same time: whether the second has to be the first one. */
        protected virtual bool is_behind (uint first, uint second) {
            return false;
        }

        /* The first one from `from` on and before `to` that starts at the time or later. What is near `from`
         * is found soonest. */
        public uint seek (uint from, uint to, int64 time) {
            uint step = 1;

            while (from + step < to && starts[from + step] < time) {
                from += step;
                step *= 2;
            }
            to = uint.min (from + step, to);
            while (from < to) {
                var middle = from + (to - from) / 2;

                if (starts[middle] < time)
                    from = middle + 1;
                else
                    to = middle;
            }
            return from;
        }

        private bool is_sorted (uint first, uint second) {
            return starts[first] < starts[second]
                || starts[first] == starts[second] && !is_behind (first, second);
        }

        /* Positions by start. Traces are mostly in order, or made of long parts that are. */
        protected uint32[] sort () {
            var n = starts.length;
            var now = new uint32[n];

            for (uint i = 0; i < n; i++)
                now[i] = i;
            if (is_all_sorted ())
                return now;
            var next = new uint32[n];
            for (int64 run = 1; run < n; run *= 2) {
                for (int64 at = 0; at < n; at += 2 * run)
                    merge (now, next, (int) at, (int) int64.min (at + run, n),
                           (int) int64.min (at + 2 * run, n));
                var former = (owned) now;
                now = (owned) next;
                next = (owned) former;
            }
            return now;
        }

        private bool is_all_sorted () {
            for (uint i = 1; i < starts.length; i++)
                if (!is_sorted (i - 1, i))
                    return false;
            return true;
        }

        private void merge (uint32[] source, uint32[] target, int at, int middle, int end) {
            var left = at;
            var right = middle;

            for (; at < end; at++)
                target[at] = right == end || left < middle && is_sorted (source[left], source[right])
                           ? source[left++] : source[right++];
        }

        protected void arrange_starts (uint32[] order, int64 begin) {
            var arranged = new int64[order.length];

            for (var i = 0; i < order.length; i++)
                arranged[i] = starts[order[i]] - begin;
            starts = (owned) arranged;
        }
    }

    /* What is drawn of a lane: an event, or several that are too short to be told apart. */
    public struct Bar {
        public uint event; /* the first one */
        public uint n_events;
        public int64 start;
        public int64 end;
    }

    public delegate void BarFunc (Bar bar);
    public delegate void ShadeFunc (int64 start, int64 end, int shade);

    /* Events are in lanes, in which they do not overlap: an event is below those that contain it. Those that
     * overlap without that, which some traces have, take the next free lane. */
    public class EventTrack : Track {
        public const uint MAX_LANES = 255;
        public const int SHADES = 4;
        const uint BLOCK = 64;

        internal int64[] durations = {};
        internal uint32[] names = {};
        private uint[] lanes = {}; /* where each begins, and where the last one ends */
        private int64[] sums = {}; /* of the durations before each block of events */

        public uint n_lanes { get { return lanes.length - 1; } }

        public void add (int64 start, int64 duration, uint name) {
            starts += start;
            durations += duration;
            names += name;
        }

        public override string title () {
            if (name != null)
                return name;
            return id != "" ? _("Thread %s").printf (id) : _("Events");
        }

        protected override bool is_behind (uint first, uint second) {
            return durations[first] < durations[second];
        }

        public override uint finish (int64 begin) {
            var order = sort ();
            var lane_of = new uint8[order.length];
            var ends = new int64[MAX_LANES];
            var counts = new uint[MAX_LANES + 1];
            uint depth = 0;

            for (var i = 0; i < order.length; i++) {
                var start = starts[order[i]];
                var end = start + durations[order[i]];
                uint lane = 0;

                while (depth > 0 && ends[depth - 1] <= start)
                    depth--;
                for (var j = 0; j < depth; j++)
                    if (ends[j] > start && ends[j] >= end)
                        lane = j + 1;
                while (lane < depth && ends[lane] > start)
                    lane++;
                lane_of[i] = (uint8) lane; /* MAX_LANES stands for no lane */
                counts[lane]++;
                if (lane == MAX_LANES)
                    continue;
                ends[lane] = end;
                depth = uint.max (depth, lane + 1);
            }
            lanes = { 0 };
            for (var i = 0; i < MAX_LANES && counts[i] > 0; i++)
                lanes += lanes[i] + counts[i];
            arrange (order, lane_of, begin);
            return counts[MAX_LANES];
        }

        private void arrange (uint32[] order, uint8[] lane_of, int64 begin) {
            var by_lane = new uint32[lanes[n_lanes]];
            uint[] at = lanes;

            for (var i = 0; i < order.length; i++)
                if (lane_of[i] < MAX_LANES)
                    by_lane[at[lane_of[i]]++] = order[i];
            arrange_starts (by_lane, begin);
            var arranged = new int64[by_lane.length];
            var arranged_names = new uint32[by_lane.length];
            int64 sum = 0;
            for (var i = 0; i < by_lane.length; i++) {
                if (i % BLOCK == 0)
                    sums += sum;
                arranged[i] = durations[by_lane[i]];
                arranged_names[i] = names[by_lane[i]];
                sum += arranged[i];
            }
            durations = (owned) arranged;
            names = (owned) arranged_names;
        }

        public int64 end_of (uint event) {
            return starts[event] + durations[event];
        }

        public uint lane_of (uint event) {
            uint lane = 0;

            while (lane + 1 < n_lanes && event >= lanes[lane + 1])
                lane++;
            return lane;
        }

        /* --- what is near an event, or -1 --- */

        public int64 neighbour (uint event, int step) {
            var lane = lane_of (event);
            var other = (int64) event + step;

            return other >= lanes[lane] && other < lanes[lane + 1] ? other : -1;
        }

        /* The next event above that contains it. */
        public int64 parent (uint event) {
            for (int64 lane = (int64) lane_of (event) - 1; lane >= 0; lane--) {
                var next = seek (lanes[lane], lanes[lane + 1], starts[event] + 1);

                if (next > lanes[lane] && end_of (next - 1) >= end_of (event))
                    return next - 1;
            }
            return -1;
        }

        /* The first event of the lane below that begins in it. */
        public int64 child (uint event) {
            var lane = lane_of (event);

            if (lane + 1 == n_lanes)
                return -1;
            var found = seek (lanes[lane + 1], lanes[lane + 2], starts[event]);
            return found < lanes[lane + 2] && starts[found] < end_of (event) ? found : -1;
        }

        /* Calls the function for what there is of a lane between two times. What is shorter than a pixel is
         * united with what is in the same pixel and in the next ones, up to one in which nothing begins.
         * Pixels are counted from the beginning of the timeline, so that they stay the same when it is
         * moved. */
        public void each_bar (uint lane, int64 from, int64 to, double pixel, BarFunc func) {
            var end = lanes[lane + 1];
            var at = seek (lanes[lane], end, from);

            end = seek (at, end, to);
            if (at > lanes[lane] && end_of (at - 1) > from)
                at--;
            while (at < end) {
                var first = at++;
                var bar = Bar () { event = first, start = starts[first], end = end_of (first) };

                if (durations[first] < pixel) {
                    at = unite (first, end, pixel);
                    bar.end = end_of (at - 1);
                }
                bar.n_events = at - first;
                func (bar);
            }
        }

        /* Returns the first event that is not united with this one. */
        private uint unite (uint at, uint end, double pixel) {
            var border = pixel_end (starts[at], pixel);

            for (;;) {
                var next = seek (at, end, border);

                if (durations[next - 1] >= pixel) /* only the last one of a pixel may be as long */
                    return next - 1;
                if (next == end || starts[next] >= border + pixel || durations[next] >= pixel)
                    return next;
                at = next;
                border = pixel_end (starts[at], pixel);
            }
        }

        /* Of the durations of the events before this one, wherever they are. */
        private int64 sum_before (uint event) {
            if (event == 0)
                return 0;
            var sum = sums[(event - 1) / BLOCK];

            for (var i = (event - 1) / BLOCK * BLOCK; i < event; i++)
                sum += durations[i];
            return sum;
        }

        /* Calls the function for the parts of a bar of several events, with how much of their time the events
         * take: 1 to SHADES. */
        public void each_shade (Bar bar, double pixel, ShadeFunc func) {
            var end = bar.event + bar.n_events;
            var at = bar.event;
            var start = bar.start;
            var last_shade = 0;

            while (at < end) {
                var next = seek (at, end, pixel_end (starts[at], pixel));
                var share = (sum_before (next) - sum_before (at)) / pixel;
                var shade = (int) double.min (double.max (Math.round (share * SHADES), 1), SHADES);

                if (last_shade != 0 && shade != last_shade) {
                    func (start, starts[at], last_shade);
                    start = starts[at];
                }
                last_shade = shade;
                at = next;
            }
            func (start, bar.end, last_shade);
        }

        /* Later than the time, whatever is lost in the computation. */
        private static int64 pixel_end (int64 time, double pixel) {
            return int64.max ((int64) (Math.floor (time / pixel + 1) * pixel), time + 1);
        }
    }

    /* Values over time, each of which stays until the next one. */
    public class CounterTrack : Track {
        const uint BLOCK = 256;

        public string key; /* what the trace calls the value */
        internal double[] values = {};
        public double lowest = 0;
        public double highest = 0;
        private double[] maxima = {}; /* of blocks */

        public void add (int64 start, double value) {
            starts += start;
            values += value;
            lowest = double.min (lowest, value);
            highest = double.max (highest, value);
        }

        public override string title () {
            return key == "" || key == "value" || key == id ? id : "%s (%s)".printf (id, key);
        }

        public override uint finish (int64 begin) {
            var order = sort ();
            var arranged = new double[order.length];

            for (var i = 0; i < order.length; i++) {
                arranged[i] = values[order[i]];
                if (i % BLOCK == 0)
                    maxima += arranged[i];
                maxima[i / BLOCK] = double.max (maxima[i / BLOCK], arranged[i]);
            }
            values = (owned) arranged;
            arrange_starts (order, begin);
            return 0;
        }

        /* The largest of the values from `from` on and before `to`, of which there is one at least. */
        public double largest (uint from, uint to) {
            var value = values[from];

            while (from < to) {
                if (from % BLOCK == 0 && from + BLOCK <= to) {
                    value = double.max (value, maxima[from / BLOCK]);
                    from += BLOCK;
                } else {
                    value = double.max (value, values[from++]);
                }
            }
            return value;
        }

        /* The value at a time; NaN before the first one. */
        public double value_at (int64 time) {
            var next = seek (0, starts.length, time + 1);

            return next > 0 ? values[next - 1] : double.NAN;
        }
    }
}
