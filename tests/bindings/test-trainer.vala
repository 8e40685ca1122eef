/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The trainer and metrics from Vala. */

using GTorch;

class Regression : Trainer {
    public Regression (GTorch.Module module, DataLoader loader, Optimizer optimizer) {
        Object (module: module, loader: loader, optimizer: optimizer);
    }

    public override Tensor training_step (Sample batch) throws GLib.Error {
        var x = batch.get_child (0).get_tensor ();
        var difference = get_module ().forward (x).sub (x.narrow (1, 0, 2));

        return difference.square ().mean ();
    }
}

class Stubborn : Trainer {
    public Stubborn (GTorch.Module module, DataLoader loader, Optimizer optimizer) {
        Object (module: module, loader: loader, optimizer: optimizer);
    }

    public override Tensor training_step (Sample batch) throws GLib.Error {
        throw new IOError.BUSY ("the class does not want to");
    }
}

class Counter : Metric {
    public Counter () throws GLib.Error {
        int64[] none = {};

        add_state ("n", GTorch.zeros (none, DType.FLOAT32));
    }

    public override bool update (Tensor output, Tensor? target) throws GLib.Error {
        return set_state ("n", get_state ("n").add_scalar (output.get_size (0)));
    }

    public override Tensor compute () throws GLib.Error {
        return get_state ("n");
    }
}

DataLoader make_loader () throws GLib.Error {
    int64[] shape = { 64, 5 };
    int64[] dim = { 1 };
    var x = GTorch.randn (shape, DType.FLOAT32, null, new Generator.with_seed (1));
    var y = x.narrow (1, 0, 2).argmax (dim);
    Tensor[] tensors = { x, y };

    return new DataLoader (new TensorDataset (tensors), 16, false);
}

GTorch.Module make_module () throws GLib.Error {
    var module = new Sequential ();

    GTorch.manual_seed (2);
    module.append (new Linear (5, 16));
    module.append (new ReLU ());
    module.append (new Linear (16, 2));
    return module;
}

Optimizer make_optimizer (GTorch.Module module) throws GLib.Error {
    return new Adam (module.get_parameters (true), 0.02);
}

async void train (Trainer trainer, MainLoop loop) {
    try {
        yield trainer.run_async ();
    } catch (GLib.Error error) {
        assert_not_reached ();
    }
    loop.quit ();
}

void test_a_classifier_learns () {
    try {
        var module = make_module ();
        var trainer = new Trainer (module, make_loader (), new CrossEntropyLoss (), make_optimizer (module));
        var loop = new MainLoop ();
        double first = 0, last = 0;
        int64 n_steps = 0, n_epochs = 0;

        trainer.n_epochs = 20;
        trainer.validation_loader = make_loader ();
        trainer.add_metric ("accuracy", new Accuracy ());
        trainer.add_metric ("n", new Counter ());
        trainer.step_done.connect ((step, loss) => {
            if (step == 1)
                first = loss;
            last = loss;
            n_steps = step;
        });
        trainer.epoch_done.connect ((epoch, loss) => {
            n_epochs = epoch;
        });
        train.begin (trainer, loop);
        loop.run ();
        assert (n_steps == 80 && n_epochs == 20);
        assert (last < first / 2);
        assert (trainer.get_result ("accuracy") > 0.9);
        assert (trainer.get_result ("n") == 64);
        assert (trainer.progress == 1);
    } catch (GLib.Error error) {
        GLib.error ("%s", error.message);
    }
}

void test_a_class_overrides_the_step () {
    try {
        var module = make_module ();
        var trainer = new Regression (module, make_loader (), make_optimizer (module));
        double first = 0;

        trainer.n_epochs = 20;
        trainer.step_done.connect ((step, loss) => {
            if (step == 1)
                first = loss;
        });
        trainer.run ();
        assert (trainer.loss < first / 2);
    } catch (GLib.Error error) {
        GLib.error ("%s", error.message);
    }
}

async void save (Trainer trainer, Trainer other, File file, MainLoop loop) {
    try {
        yield trainer.save_checkpoint_async (file);
        yield other.load_checkpoint_async (file);
        assert (other.step == trainer.step && other.step == 4);
        yield other.load_checkpoint_async (file.get_child ("none"));
        assert_not_reached ();
    } catch (GLib.Error error) {
        assert (error is IOError);
    }
    loop.quit ();
}

void test_a_main_loop_waits_for_checkpoints () {
    try {
        var module = make_module ();
        var trainer = new Trainer (module, make_loader (), new CrossEntropyLoss (), make_optimizer (module));
        var same = make_module ();
        var other = new Trainer (same, make_loader (), new CrossEntropyLoss (), make_optimizer (same));
        var loop = new MainLoop ();
        FileIOStream stream;
        var file = File.new_tmp ("gtorch-XXXXXX", out stream);

        trainer.step_done.connect ((step, loss) => {
            if (step == 4)
                trainer.stop ();
        });
        trainer.n_epochs = 100;
        trainer.run ();
        assert (trainer.step == 4);
        save.begin (trainer, other, file, loop);
        loop.run ();
        file.delete ();
    } catch (GLib.Error error) {
        GLib.error ("%s", error.message);
    }
}

void test_errors_end_the_run () {
    try {
        var module = make_module ();
        var trainer = new Stubborn (module, make_loader (), make_optimizer (module));

        trainer.run ();
        assert_not_reached ();
    } catch (GLib.Error error) {
        assert (error is IOError.BUSY);
        assert (error.message == "the class does not want to");
    }
}

int main (string[] args) {
    Test.init (ref args);
    choose_device ();
    Test.add_func ("/GTorch/Trainer/a_classifier_learns", test_a_classifier_learns);
    Test.add_func ("/GTorch/Trainer/a_class_overrides_the_step", test_a_class_overrides_the_step);
    Test.add_func ("/GTorch/Trainer/errors_end_the_run", test_errors_end_the_run);
    Test.add_func ("/GTorch/Trainer/waits_for_checkpoints", test_a_main_loop_waits_for_checkpoints);
    return Test.run ();
}
