/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The marks of a time axis, and how times are written. */

namespace GTorchMonitor {
    /* The smallest of 1, 2, 5, 10, 20, … nanoseconds that is as long at least. */
    public int64 tick_step (double least) {
        int64 step = 1;

        while (step < least && step < (int64) 1e18) {
            if (2 * step >= least)
                return 2 * step;
            if (5 * step >= least)
                return 5 * step;
            step *= 10;
        }
        return step;
    }

    private string with_unit (string number, int64 unit) {
        return unit == 1000000000 ? _("%s s").printf (number)
             : unit == 1000000 ? _("%s ms").printf (number)
             : unit == 1000 ? _("%s µs").printf (number) : _("%s ns").printf (number);
    }

    /* A time, as exact as its multiples of the step need to be, in the unit that suits `longest`. */
    public string tick_text (int64 ns, int64 step, int64 longest) {
        int64 unit = 1;
        var n_digits = 0;

        while (unit < 1000000000 && longest / 1000 >= unit)
            unit *= 1000;
        for (; step < unit; step *= 10)
            n_digits++;
        return with_unit ("%.*f".printf (n_digits, (double) ns / unit), unit);
    }

    /* A time to the nanosecond, without zeros at its end. */
    public string exact_text (int64 ns) {
        int64 step = 1;

        while (step < 1000000000 && ns % (10 * step) == 0)
            step *= 10;
        return tick_text (ns, step, ns);
    }
}
