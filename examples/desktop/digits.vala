// SPDX-License-Identifier: LGPL-2.1-or-later
// SPDX-FileCopyrightText: The GTorch authors

// A window in which a network learns to read digits, with its loss, its progress and what it reads.

extern const string DATA_FILE;
const int N = 1797;
const int SAMPLES = 12;

int epochs = 20;
bool start_at_once = false;
double cancel_after = 0;
double close_after = 0;

const OptionEntry[] ENTRIES = {
    { "epochs", 0, 0, OptionArg.INT, ref epochs, "How often all digits are seen", "N" },
    { "start", 0, 0, OptionArg.NONE, ref start_at_once, "Train at once", null },
    { "cancel-after", 0, 0, OptionArg.DOUBLE, ref cancel_after, "Press Cancel by itself", "SECONDS" },
    { "close-after", 0, 0, OptionArg.DOUBLE, ref close_after, "Close after training", "SECONDS" },
    { null },
};

// Returns images as [1797, 1, 8, 8] from 0 to 1, labels as [1797].
void load_digits (out GTorch.Tensor images, out GTorch.Tensor labels) throws Error {
    var gunzip = new ZlibDecompressor (ZlibCompressorFormat.GZIP);
    var file = File.new_for_path (DATA_FILE).read ();
    var lines = new DataInputStream (new ConverterInputStream (file, gunzip));
    var pixels = new float[N * 64];
    var digits = new int64[N];

    for (int i = 0; i < N; i++) {
        var line = lines.read_line ();
        if (line == null)
            throw new IOError.FAILED ("the data are too short");
        var numbers = line.split (",");
        for (int j = 0; j < 64; j++)
            pixels[i * 64 + j] = int.parse (numbers[j]) / 16.0f;
        digits[i] = int64.parse (numbers[64]);
    }
    images = new GTorch.Tensor.from_floats (pixels, { N, 1, 8, 8 }, GTorch.DType.FLOAT32, null);
    labels = new GTorch.Tensor.from_ints (digits, { N }, GTorch.DType.INT64, null);
}

GTorch.Module make_conv (int64 in_channels, int64 out_channels) throws Error {
    var conv = (GTorch.Module) Object.new (typeof (GTorch.Conv2d),
        "in-channels", in_channels, "out-channels", out_channels, "kernel-size", new GTorch.Size ({ 3 }),
        "padding", new GTorch.Size ({ 1 }));

    conv.check ();
    return conv;
}

GTorch.Trainer make_trainer (GTorch.Tensor images, GTorch.Tensor labels) throws Error {
    var model = new GTorch.Sequential.from_modules ({
        make_conv (1, 16),
        new GTorch.ReLU (),
        make_conv (16, 32),
        new GTorch.ReLU (),
        new GTorch.MaxPool2d ({ 2 }),
        new GTorch.Flatten (),
        new GTorch.Linear (512, 10),
    });
    var data = new GTorch.TensorDataset ({ images, labels });
    var adam = new GTorch.Adam (model.get_parameters (true), 2e-3);
    var loader = new GTorch.DataLoader (data, 64, true);
    var trainer = new GTorch.Trainer (model, loader, new GTorch.CrossEntropyLoss (), adam);

    trainer.set_property ("n-epochs", (int64) epochs);
    trainer.set_property ("max-ahead", (int64) 2); /* the plot need not be waited for */
    return trainer;
}

class Window : Gtk.ApplicationWindow {
    GTorch.Trainer trainer;
    GTorch.Tensor samples;
    GTorchGtk.TrainerProgress progress;
    Gtk.Button button;
    Gtk.Label[] labels = {};
    int64 longest_gap;
    int64 last_look;

    public Window (Gtk.Application app) throws Error {
        Object (application: app, title: "Digits", default_width: 860, default_height: 620);
        GTorch.Tensor images, digits;
        load_digits (out images, out digits);
        trainer = make_trainer (images, digits);
        samples = images.narrow (0, 0, SAMPLES);

        var plot = new GTorchGtk.Plot (null);
        plot.vexpand = plot.hexpand = true;
        plot.follow_trainer (trainer);
        progress = new GTorchGtk.TrainerProgress (trainer);
        progress.hexpand = true;
        button = new Gtk.Button.with_mnemonic ("_Train");
        button.valign = Gtk.Align.CENTER;
        button.add_css_class ("suggested-action");
        button.clicked.connect (() => start.begin ());

        GTorch.Module module;
        trainer.get ("module", out module);
        var parameters = new GTorchGtk.ParameterList (module);
        parameters.interval = 500;
        parameters.set_size_request (400, 240);
        var top = new Gtk.Box (Gtk.Orientation.HORIZONTAL, 12);
        var right = new Gtk.Box (Gtk.Orientation.VERTICAL, 12);
        right.append (parameters);
        right.append (new GTorchGtk.DevicePanel (GTorch.get_default_device ()));
        top.append (plot);
        top.append (right);
        var bottom = new Gtk.Box (Gtk.Orientation.HORIZONTAL, 12);
        bottom.append (progress);
        bottom.append (button);
        var box = new Gtk.Box (Gtk.Orientation.VERTICAL, 12);
        box.margin_top = box.margin_bottom = box.margin_start = box.margin_end = 12;
        box.append (top);
        box.append (make_samples ());
        box.append (bottom);
        child = box;
    }

    // A row of digits, each above what the network reads.
    Gtk.Widget make_samples () throws Error {
        var row = new Gtk.Box (Gtk.Orientation.HORIZONTAL, 8);

        row.homogeneous = true;
        for (int i = 0; i < SAMPLES; i++) {
            var paintable = new GTorchGtk.TensorPaintable ();
            paintable.colormap = GTorchPlot.Colormap.INK;
            paintable.set_tensor (samples.select (0, i));
            var column = new Gtk.Box (Gtk.Orientation.VERTICAL, 4);
            var picture = new Gtk.Picture.for_paintable (paintable);
            picture.alternative_text = "a digit";
            picture.set_size_request (56, 56);
            labels += new Gtk.Label ("?");
            column.append (picture);
            column.append (labels[i]);
            row.append (column);
        }
        return row;
    }

    bool look () {
        var now = get_monotonic_time ();

        longest_gap = int64.max (longest_gap, now - last_look);
        last_look = now;
        return Source.CONTINUE;
    }

    public async void start () {
        var how = "done";

        button.sensitive = false;
        longest_gap = 0;
        last_look = get_monotonic_time ();
        var looks = Timeout.add (1, look, Priority.HIGH);
        if (cancel_after > 0)
            Timeout.add ((uint) (1000 * cancel_after), () => {
                progress.cancellable.cancel ();
                return Source.REMOVE;
            });
        try {
            yield progress.run_async ();
        } catch (IOError.CANCELLED error) {
            how = "cancelled";
        } catch (Error error) {
            how = error.message;
        }
        Source.remove (looks);
        button.sensitive = true;
        try {
            read_samples ();
        } catch (Error error) {
            how = error.message;
        }
        print ("desktop: %s, %lld steps, longest gap of the main loop %.1f ms\n", how, trainer.get_step (),
               longest_gap / 1000.0);
        if (close_after > 0)
            Timeout.add ((uint) (1000 * close_after), () => {
                close ();
                return Source.REMOVE;
            });
    }

    void read_samples () throws Error {
        var guard = GTorch.no_grad ();
        GTorch.Module module;

        trainer.get ("module", out module);
        module.eval ();
        var read = module.forward (samples).argmax ({ 1 }, false).to_ints ();
        module.train (true);
        guard = null;
        for (int i = 0; i < SAMPLES; i++)
            labels[i].label = read[i].to_string ();
    }
}

int main (string[] args) {
    var app = new Gtk.Application ("org.example.Digits", ApplicationFlags.NON_UNIQUE);

    GTorch.manual_seed (1);
    app.add_main_option_entries (ENTRIES);
    app.activate.connect (() => {
        try {
            var window = new Window (app);
            window.present ();
            if (start_at_once)
                Timeout.add (500, () => {
                    window.start.begin ();
                    return Source.REMOVE;
                });
        } catch (Error error) {
            printerr ("desktop: %s\n", error.message);
        }
    });
    return app.run (args);
}
