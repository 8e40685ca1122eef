// SPDX-License-Identifier: LGPL-2.1-or-later
// SPDX-FileCopyrightText: The GTorch authors

// Learns to separate two spirals while the main loop stays responsive.
//
// Training steps are enqueued on a stream, at most two ahead of the device, and nothing in this thread
// waits for them: an event reports the end of each, and losses are read asynchronously. A timeout stands
// in for the user interface: it draws a progress bar and measures for how long the main loop was blocked.
// Ctrl-C ends the training after the pending steps.

const int WIDTH = 128;
const int AHEAD = 2;
const int LOSS_EVERY = 10;
const int TICK_MS = 10;
const int INTERRUPTED = 130;

int seed = 1;
int steps = 300;
int points = 5000;

const OptionEntry[] ENTRIES = {
    { "seed", 0, 0, OptionArg.INT, ref seed, "Where random numbers start", "N" },
    { "steps", 0, 0, OptionArg.INT, ref steps, "How often all points are seen", "N" },
    { "points", 0, 0, OptionArg.INT, ref points, "How many points each spiral has", "N" },
    { null },
};

class Run {
    public Cancellable cancellable = new Cancellable ();
    public int n_done = 0;
    public double loss = 0; // the last known loss

    MainLoop loop = new MainLoop ();
    GTorch.Stream stream;
    GTorch.Tensor x;
    GTorch.Tensor y;
    GTorch.Module model;
    GTorch.Optimizer adam;
    Error? error = null; // the first error
    int n_sent = 0;
    int n_drawn = 0;
    // otherwise each longer bar gets a line
    bool in_place = Posix.isatty (Posix.STDOUT_FILENO);
    int bar_length = -1;
    int n_awaited = 0; // pending steps and reads of losses
    int n_ticks = 0;
    int64 last_tick;
    int64 longest_us = 0;

    public Run (GTorch.Stream stream) throws Error {
        this.stream = stream;
        make_spirals ();
        model = new GTorch.Sequential.from_modules ({
            new GTorch.Linear (2, WIDTH),
            new GTorch.Tanh (),
            new GTorch.Linear (WIDTH, WIDTH),
            new GTorch.Tanh (),
            new GTorch.Linear (WIDTH, 1),
        });
        adam = new GTorch.Adam (model.get_parameters (true), 0.01);
    }

    // --- work on the device ---

    // Creates points as [2 n, 2], and the spiral of each as [2 n, 1].
    void make_spirals () throws Error {
        var radius = GTorch.linspace (0.1, 1, points, GTorch.DType.FLOAT32, null);
        var angle = radius.mul_scalar (9.5);
        var one = GTorch.stack ({ radius.mul (angle.cos ()), radius.mul (angle.sin ()) }, 1);
        var no = GTorch.zeros ({ points, 1 }, GTorch.DType.FLOAT32, null);
        var yes = GTorch.ones ({ points, 1 }, GTorch.DType.FLOAT32, null);

        x = GTorch.cat ({ one, one.neg () }, 0);
        y = GTorch.cat ({ no, yes }, 0);
    }

    // Enqueues a step; returns before anything is computed.
    void send_step () throws Error {
        var done = new GTorch.Event (GTorch.EventFlags.NONE);
        var loss = model.forward (x).binary_cross_entropy_with_logits (y, null, null, GTorch.Reduction.MEAN);

        adam.zero_grad (true);
        loss.backward (null, false, false);
        adam.step ();

        done.completed.connect (on_step_done);
        done.record (stream);
        n_awaited++;
        n_sent++;
        if (n_sent % LOSS_EVERY == 0 || n_sent == steps)
            read_loss.begin (loss);
    }

    async void read_loss (GTorch.Tensor tensor) {
        n_awaited++;
        try {
            loss = yield tensor.item_double_async (cancellable);
        } catch (Error error) {
            fail (error);
        }
        one_less_awaited ();
    }

    // --- in the main loop ---

    void fail (Error error) {
        if (this.error == null && !(error is IOError.CANCELLED))
            this.error = error;
        cancellable.cancel ();
    }

    void one_less_awaited () {
        if (--n_awaited == 0)
            loop.quit ();
    }

    void on_step_done () {
        n_done++;
        try {
            stream.check ();
            if (n_sent < steps && !cancellable.is_cancelled ())
                send_step ();
        } catch (Error error) {
            fail (error);
        }
        one_less_awaited ();
    }

    bool on_interrupt () {
        cancellable.cancel ();
        return Source.REMOVE; // another Ctrl-C ends the program at once
    }

    void measure_gap () {
        var now = get_monotonic_time ();

        longest_us = int64.max (longest_us, now - last_tick);
        last_tick = now;
    }

    void draw () {
        var length = 20 * n_done / steps;
        var bar = string.nfill (length, '#') + string.nfill (20 - length, '.');

        if (!in_place && length == bar_length)
            return;
        print ("%s[%s] %3d %%, loss %.4f%s", in_place ? "\r" : "", bar, 100 * n_done / steps, loss,
               in_place ? "" : "\n");
        n_drawn = n_done;
        bar_length = length;
    }

    bool on_tick () {
        n_ticks++;
        measure_gap ();
        if (n_drawn < n_done)
            draw ();
        return Source.CONTINUE;
    }

    public void train () throws Error {
        // The first step loads kernels and libraries, which takes a while: it is made before the user
        // interface starts.
        while (n_sent < int.min (steps, AHEAD))
            send_step ();

        Unix.signal_add (Posix.Signal.INT, on_interrupt);
        Timeout.add (TICK_MS, on_tick);
        var start = last_tick = get_monotonic_time ();
        loop.run ();
        measure_gap ();
        draw ();
        if (in_place)
            print ("\n");
        print ("meanwhile: %d ticks in %.2f s, %.1f ms from one to the next at most\n", n_ticks,
               (last_tick - start) / 1e6, longest_us / 1e3);
        if (error != null)
            throw error;
    }
}

/* Prints the GPU that computes, or why none does. */
void print_device () {
    unowned var device = GTorch.get_default_device ();
    var reason = GTorch.DeviceManager.get_default ().dup_reason ();

    print ("meanwhile: on %s, %s%s\n", device.to_string (), device.get_name (),
           reason != null ? "; no GPU: " + reason : "");
}

int main (string[] args) {
    try {
        var context = new OptionContext ("- learn while a main loop goes on");

        context.add_main_entries (ENTRIES, null);
        context.add_group (GTorch.get_option_group ());
        context.parse (ref args);
        if (args.length > 1)
            throw new OptionError.FAILED ("unexpected argument “%s”", args[1]);
        if (steps < 1 || points < 1)
            throw new OptionError.BAD_VALUE ("--steps and --points begin at 1");
        print_device ();
        var stream = new GTorch.Stream (GTorch.get_default_device (), 0);
        stream.set_current ();
        GTorch.manual_seed (seed);
        var run = new Run (stream);
        run.train ();
        if (run.cancellable.is_cancelled ()) {
            print ("meanwhile: stopped after %d of %d steps\n", run.n_done, steps);
            return INTERRUPTED;
        }
        print ("meanwhile: %d steps, loss %.9f\n", steps, run.loss);
        return 0;
    } catch (Error error) {
        printerr ("meanwhile: %s\n", error.message);
        return 1;
    }
}
