// SPDX-License-Identifier: LGPL-2.1-or-later
// SPDX-FileCopyrightText: The GTorch authors

// Learns to read handwritten digits, saves and reloads the network, and draws the misread digits.

extern const string DATA_FILE;
const int N = 1797;
const int BATCH = 64;

int seed = 1;
int epochs = 20;
string? data_path = null;
string? output = null;

const OptionEntry[] ENTRIES = {
    { "data", 0, 0, OptionArg.FILENAME, ref data_path, "The digits, digits.csv.gz", "FILE" },
    { "seed", 0, 0, OptionArg.INT, ref seed, "Where random numbers start", "N" },
    { "epochs", 0, 0, OptionArg.INT, ref epochs, "How often all digits are seen", "N" },
    { "output", 0, 0, OptionArg.FILENAME, ref output, "The picture to draw", "FILE" },
    { null },
};

// Returns images as [1797, 1, 8, 8] from 0 to 1, labels as [1797].
void load_digits (out GTorch.Tensor images, out GTorch.Tensor labels) throws Error {
    var gunzip = new ZlibDecompressor (ZlibCompressorFormat.GZIP);
    var file = File.new_for_path (data_path ?? DATA_FILE).read ();
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

/* Returns a convolution that keeps the size of the image. */
GTorch.Module make_conv (int64 in_channels, int64 out_channels) throws Error {
    var conv = (GTorch.Module) Object.new (typeof (GTorch.Conv2d),
        "in-channels", in_channels, "out-channels", out_channels, "kernel-size", new GTorch.Size ({ 3 }),
        "padding", new GTorch.Size ({ 1 }));

    conv.check ();
    return conv;
}

GTorch.Module make_model () throws Error {
    return new GTorch.Sequential.from_modules ({
        make_conv (1, 16),
        new GTorch.ReLU (),
        make_conv (16, 32),
        new GTorch.ReLU (),
        new GTorch.MaxPool2d ({ 2 }),
        new GTorch.Flatten (),
        new GTorch.Dropout (0.25),
        new GTorch.Linear (512, 10),
    });
}

// Returns the digits that the model reads, without recording gradients.
int64[] read_digits (GTorch.Module model, GTorch.Tensor images) throws Error {
    var guard = GTorch.no_grad ();
    var read = model.forward (images).argmax ({ 1 }, false).to_ints ();

    guard = null;
    return read;
}

double[] train (GTorch.Module model, GTorch.Tensor images, GTorch.Tensor labels) throws Error {
    var adam = new GTorch.Adam (model.get_parameters (true), 2e-3);
    var n = labels.get_numel ();
    double[] losses = {};
    var in_place = Posix.isatty (Posix.STDOUT_FILENO);

    for (int epoch = 0; epoch < epochs; epoch++) {
        var order = GTorch.randperm (n, GTorch.DType.INT64, null, null);
        double total = 0;

        for (int64 start = 0; start < n; start += BATCH) {
            var index = order.slice (0, start, int64.min (start + BATCH, n), 1);
            var scores = model.forward (images.index_select (0, index));
            var target = labels.index_select (0, index);
            var loss = scores.cross_entropy (target, null, GTorch.Reduction.MEAN, -100, 0);

            adam.zero_grad (true);
            loss.backward (null, false, false);
            adam.step ();
            total += loss.item_double () * int64.min (BATCH, n - start);
        }
        losses += total / n;
        print ("%sepoch %2d of %d: loss %.4f%s", in_place ? "\r" : "", epoch + 1, epochs, losses[epoch],
               in_place ? "" : "\n");
    }
    if (in_place)
        print ("\n");
    return losses;
}

// Draws the digits that were misread, with their labels and what was read, and beside that picture one of the
// losses.
#if HAS_PLOT
void draw (double[] losses, GTorch.Tensor images, int64[] labels, int64[] read) throws Error {
    var path = output ?? "digits.png";
    string[] titles = {};
    int64[] misread = {};

    for (int i = 0; i < read.length && misread.length < 16; i++)
        if (read[i] != labels[i]) {
            misread += i;
            titles += @"$(labels[i]) read as $(read[i])";
        }
    if (misread.length > 0) {
        var index = new GTorch.Tensor.from_ints (misread, { misread.length });
        var shown = images.index_select (0, index).neg ().add_scalar (1);

        GTorchPlot.images (shown, 4, titles).save (File.new_for_path (path));
    }
    var curve = new GTorch.Tensor.from_doubles (losses, { losses.length });
    var figure = GTorchPlot.lines ({ curve }, { "training" });
    unowned var axes = figure.get_axes ();
    axes.x_label = "epoch";
    axes.y_label = "loss";
    axes.y_scale = GTorchPlot.Scale.LOG;
    int dot = path.last_index_of_char ('.');
    dot = dot < 0 ? path.length : dot;
    figure.save (File.new_for_path (path[0:dot] + "-losses" + path[dot:path.length]));
}
#else
void draw (double[] losses, GTorch.Tensor images, int64[] labels, int64[] read) {
    print ("digits: draws no pictures: it was built without gtorch-plot\n");
}
#endif

void run () throws Error {
    GTorch.Tensor images, labels;
    int64[] held = {}, rest = {};
    uint8[] weights;
    int n_right = 0;

    GTorch.manual_seed (seed);
    load_digits (out images, out labels);
    var model = make_model ();
    for (int64 i = 0; i < N; i++)
        if (i % 5 == 0)
            held += i;
        else
            rest += i;
    var held_index = new GTorch.Tensor.from_ints (held, { held.length }, GTorch.DType.INT64, null);
    var rest_index = new GTorch.Tensor.from_ints (rest, { rest.length }, GTorch.DType.INT64, null);
    var test_images = images.index_select (0, held_index);

    var losses = train (model, images.index_select (0, rest_index), labels.index_select (0, rest_index));
    model.eval ();
    var read = read_digits (model, test_images);

    // The parameters go through a file into a new model, which must read the same digits.
    var file = File.new_for_path ("digits.safetensors");
    GTorch.safetensors_save_file (model.state_dict (), null, file, null, null);
    var again = make_model ();
    again.load_state_dict (GTorch.safetensors_load_file (file, false, null, null, null, null), true);
    again.eval ();
    var read_again = read_digits (again, test_images);
    var right = labels.index_select (0, held_index).to_ints ();
    for (int i = 0; i < right.length; i++) {
        n_right += read[i] == right[i] ? 1 : 0;
        if (read[i] != read_again[i])
            throw new IOError.FAILED ("the reloaded model reads digit %d otherwise", i);
    }
    draw (losses, test_images, right, read);
    file.load_contents (null, out weights, null);
    print ("digits: accuracy %.2f %%, loss %.6f, weights %.16s\n", 100.0 * n_right / right.length,
           losses[losses.length - 1], Checksum.compute_for_data (ChecksumType.SHA256, weights));
}

/* Prints the GPU that computes, or why none does. */
void print_device () {
    unowned var device = GTorch.get_default_device ();
    var reason = GTorch.DeviceManager.get_default ().dup_reason ();

    print ("digits: on %s, %s%s\n", device.to_string (), device.get_name (),
           reason != null ? "; no GPU: " + reason : "");
}

int main (string[] args) {
    try {
        var context = new OptionContext ("- learn to read digits");

        context.add_main_entries (ENTRIES, null);
        context.add_group (GTorch.get_option_group ());
        context.parse (ref args);
        if (args.length > 1)
            throw new OptionError.FAILED ("unexpected argument “%s”", args[1]);
        print_device ();
        run ();
        return 0;
    } catch (Error error) {
        printerr ("digits: %s\n", error.message);
        return 1;
    }
}
