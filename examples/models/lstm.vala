// SPDX-License-Identifier: LGPL-2.1-or-later
// SPDX-FileCopyrightText: The GTorch authors

// A long short-term memory, which forecasts a series: the program lstm.py in Vala. With the same options it
// draws the same random numbers and ends with the same line.

const int HOURS = 6000;
const int WEEK = 168;
const int PAST = 72;
const int AHEAD = 48;
const int64 HIDDEN = 32;

int seed = 1;
int n_steps = 600;
int batch = 32;

const OptionEntry[] ENTRIES = {
    { "seed", 0, 0, OptionArg.INT, ref seed, "Where random numbers start", "N" },
    { "steps", 0, 0, OptionArg.INT, ref n_steps, "How many batches to train on", "N" },
    { "batch", 0, 0, OptionArg.INT, ref batch, "Pieces of the series in a batch", "N" },
    { null },
};

// Returns the load of 6000 hours, around 0; the noise is that of a simple generator of random numbers.
double[] make_series () {
    var values = new double[HOURS];
    int64 state = 1;
    double noise = 0;

    for (int hour = 0; hour < HOURS; hour++) {
        state = (state * 1103515245 + 12345) % 2147483648;
        noise = 0.98 * noise + 0.05 * (state / 1073741824.0 - 1);
        double day = 2 * Math.PI * hour / 24;
        bool is_working_day = hour / 24 % 7 < 5;
        double value = 0.6 * Math.sin (day - 2) + 0.25 * Math.sin (2 * day - 1)
                       + 0.3 * Math.sin (2 * Math.PI * hour / 8766);

        values[hour] = value * (is_working_day ? 1 : 0.6) - (is_working_day ? 0 : 0.3) + noise;
    }
    return values;
}

// Takes the past [N, 72, 1], returns what follows, [N, 48].
class Forecaster : GTorch.Module {
    GTorch.LSTM lstm;
    GTorch.Linear last;

    public Forecaster () throws Error {
        lstm = GTorch.LSTM.create (1, HIDDEN, 1, true, true);
        last = new GTorch.Linear (HIDDEN, AHEAD);
        register_module ("lstm", lstm);
        register_module ("last", last);
    }

    public override GTorch.Tensor forward (GTorch.Tensor past) throws Error {
        return last.forward (lstm.forward (past).select (1, -1));
    }
}

// Returns the past [N, 72, 1] and the future [N, 48] of pieces that start there.
void cut (GTorch.Tensor changes, GTorch.Tensor starts, out GTorch.Tensor past, out GTorch.Tensor future)
        throws Error {
    var offsets = GTorch.arange_int (0, PAST + AHEAD, 1, GTorch.DType.INT64, starts.get_device ());
    var pieces = changes.take (starts.unsqueeze (1).add (offsets));

    past = pieces.narrow (1, 0, PAST).unsqueeze (2);
    future = pieces.narrow (1, PAST, AHEAD);
}

void run () throws Error {
    unowned var device = GTorch.get_default_device ();
    int64 n_train = HOURS * 4 / 5;
    double loss_now = 0;

    GTorch.manual_seed (seed);
    var series = make_series ();
    var differences = new double[HOURS - WEEK];
    for (int i = 0; i < differences.length; i++)
        differences[i] = series[i + WEEK] - series[i];
    var changes = new GTorch.Tensor.from_doubles (differences, { HOURS - WEEK }, GTorch.DType.FLOAT32, null);
    var model = new Forecaster ();
    var adam = new GTorch.Adam (model.get_parameters (true), 3e-3);
    GTorch.Tensor past, future;

    for (int step = 1; step <= n_steps; step++) {
        var starts = GTorch.randint (0, n_train - PAST - AHEAD, { batch }, GTorch.DType.INT64,
                                     GTorch.Device.cpu ());

        cut (changes, starts.to_device (device), out past, out future);
        var loss = model.forward (past).mse_loss (future);

        adam.zero_grad (true);
        loss.backward (null, false, false);
        adam.step ();
        if (step % 50 == 0 || step == n_steps) {
            loss_now = loss.item_double ();
            print ("step %d of %d: loss %.4f\n", step, n_steps, loss_now);
        }
    }

    var starts = GTorch.arange_int (n_train, HOURS - WEEK - PAST - AHEAD, 24, GTorch.DType.INT64, null);
    var guard = GTorch.no_grad ();

    cut (changes, starts, out past, out future);
    var error = model.forward (past).mse_loss (future).sqrt ().item_double ();
    var plain = future.square ().mean ().sqrt ().item_double ();
    guard = null;
    print ("lstm: loss %.6f, error %.6f, that of the week before %.6f\n", loss_now, error, plain);
}

int main (string[] args) {
    try {
        var context = new OptionContext ("- learn to forecast a series");

        context.add_main_entries (ENTRIES, null);
        context.add_group (GTorch.get_option_group ());
        context.parse (ref args);
        if (args.length > 1)
            throw new OptionError.FAILED ("unexpected argument “%s”", args[1]);
        if (n_steps < 1 || batch < 1)
            throw new OptionError.BAD_VALUE ("steps %d and batch %d must be at least 1", n_steps, batch);
        unowned var device = GTorch.get_default_device ();
        print ("lstm: on %s, %s\n", device.to_string (), device.get_name ());
        run ();
        return 0;
    } catch (Error error) {
        printerr ("lstm: %s\n", error.message);
        return 1;
    }
}
