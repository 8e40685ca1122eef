/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What a trace says of an event, while it is read. */

namespace GTorchMonitor {
    /* A point in time, or a duration. Traces have microseconds with decimals; whole nanoseconds are computed
     * from the sum of start and duration, so that what ends when another begins does so here as well. */
    public struct Instant {
        const double MAX_US = 3e15; /* 95 years, so that sums and differences are numbers of 64 bits */

        public double us;
        public int64 ns;
        public int ps; /* beside ns: 0 to 999 */

        public Instant.none () {
            us = double.NAN;
        }

        public Instant.parse (string number) {
            us = double.parse (number);
            if (!is_placed ())
                return;
            if (number.contains ("e") || number.contains ("E")) {
                ns = (int64) Math.floor (us * 1000);
                return;
            }
            var parts = number.split (".");
            var is_negative = parts[0][0] == '-';
            int fraction = 0; /* in picoseconds */

            for (var i = 0; i < 6; i++)
                fraction = fraction * 10 + (parts.length > 1 && i < parts[1].length ? parts[1][i] - '0' : 0);
            ns = int64.parse (parts[0]) * 1000 + (is_negative ? -(fraction / 1000) : fraction / 1000);
            ps = fraction % 1000;
            if (is_negative && ps > 0) {
                ns--;
                ps = 1000 - ps;
            }
        }

        public bool is_duration () {
            return us >= 0 && us.is_infinity () == 0;
        }

        /* Whether it is known, and not so far away that a timeline has no place for it. */
        public bool is_placed () {
            return us.abs () <= MAX_US;
        }

        public int64 plus (Instant other) {
            return ns + other.ns + (ps + other.ps) / 1000;
        }
    }

    public class TraceEvent {
        const int MAX_NUMBERS = 8;

        public string phase;
        public string name;
        public string category;
        public string process;
        public string thread;
        public Instant start;
        public Instant duration;

        /* Of the arguments: a name, and numbers by their names. */
        public string label;
        internal string[] keys;
        internal double[] numbers;

        public TraceEvent () {
            reset ();
        }

        public void reset () {
            phase = name = category = process = thread = label = "";
            start = Instant.none ();
            duration = Instant.none ();
            keys = {};
            numbers = {};
        }

        public void add_number (string key, double number) {
            if (keys.length == MAX_NUMBERS || number.is_infinity () != 0)
                return;
            keys += key;
            numbers += number;
        }
    }
}
