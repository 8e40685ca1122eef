/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the VAPI adds: brackets, foreach, `in`, defaults of arguments, and lists of one type. */

using GTorch;

delegate void Body () throws GLib.Error;

int n_cases = 0;
bool failed = false;

void test (string name, Body body) {
    n_cases++;
    try {
        body ();
        print ("ok %d - %s\n", n_cases, name);
    } catch (GLib.Error error) {
        failed = true;
        print ("not ok %d - %s\n# %s\n", n_cases, name, error.message);
    }
}

void equal (Tensor got, double[] values, int64[] shape) throws GLib.Error {
    double[] found = got.to_doubles ();
    int64[] sizes = got.get_shape ();
    bool right = found.length == values.length && sizes.length == shape.length;

    for (int i = 0; right && i < shape.length; i++)
        right = sizes[i] == shape[i];
    for (int i = 0; right && i < values.length; i++)
        right = found[i] == values[i];
    if (!right)
        throw new IOError.FAILED ("another tensor: %s", got.to_string ());
}

void refused (int code, string text, Body body) throws GLib.Error {
    try {
        body ();
    } catch (GTorch.Error error) {
        if (error.code != code || !(text in error.message))
            throw new IOError.FAILED ("another error: %s", error.message);
        return;
    }
    throw new IOError.FAILED ("no error");
}

Tensor range () throws GLib.Error {
    return GTorch.arange (0, 6).reshape ({ 2, 3 });
}

void integers_select_parts () throws GLib.Error {
    var x = range ();
    int64 wide = 2;
    uint8 narrow = 1;

    equal (x[0], { 0, 1, 2 }, { 3 });
    equal (x[-1], { 3, 4, 5 }, { 3 });
    equal (x[1, wide], { 5 }, {});
    equal (x[narrow, 0], { 3 }, {});
}

void items_of_several_types_are_combined () throws GLib.Error {
    var x = range ();

    equal (x["0, 1:"], { 1, 2 }, { 2 });
    equal (x[0, "1:"], { 1, 2 }, { 2 });
    equal (x["...", 0], { 0, 3 }, { 2 });
    equal (x["None", 0, 0], { 0 }, { 1 });
    equal (x[x.gt_scalar (3)], { 4, 5 }, { 2 });
    equal (x[":", new Tensor.from_ints ({ 2, 0 }, { 2 })], { 2, 0, 5, 3 }, { 2, 2 });
    equal (x[true], { 0, 1, 2, 3, 4, 5 }, { 1, 2, 3 });
}

void parts_are_views () throws GLib.Error {
    var x = range ();

    x[1].fill_inplace (7);
    equal (x, { 0, 1, 2, 7, 7, 7 }, { 2, 3 });
}

void parts_are_written () throws GLib.Error {
    var x = range ();

    x[0, 1] = 50;
    x[1] = 1.5;
    x["0, 2"] = x[0, 1];
    equal (x, { 0, 50, 50, 1.5, 1.5, 1.5 }, { 2, 3 });
    x[x.gt_scalar (2)] = false;
    equal (x, { 0, 0, 0, 1.5, 1.5, 1.5 }, { 2, 3 });
    x[":", "1:"] = new Tensor.from_doubles ({ 8, 9 }, { 2 });
    equal (x, { 0, 8, 9, 1.5, 8, 9 }, { 2, 3 });
}

void large_integers_are_written_exactly () throws GLib.Error {
    var x = GTorch.zeros ({ 2 }, DType.INT64);

    x[1] = (int64) 9007199254740993;
    if (x[1].item_int () != 9007199254740993)
        throw new IOError.FAILED ("rounded");
}

void errors_name_the_item () throws GLib.Error {
    var x = range ();

    refused (GTorch.Error.INDEX, "index 5 is out of range", () => { var part = x[5]; part.release (); });
    refused (GTorch.Error.INDEX, "3 dimensions are indexed", () => {
        var part = x[0, 0, 0];
        part.release ();
    });
    refused (GTorch.Error.INVALID, "item 1 is a gdouble", () => {
        var part = x[0, 0.5];
        part.release ();
    });
    refused (GTorch.Error.INVALID, "cannot be read at character 1", () => {
        var part = x["one"];
        part.release ();
    });
    refused (GTorch.Error.INDEX, "index 2 is out of range", () => { x[2] = 1; });
    refused (GTorch.Error.INVALID, "a gchararray cannot be written", () => { x[0] = "1"; });
    equal (x, { 0, 1, 2, 3, 4, 5 }, { 2, 3 });
}

void foreach_visits_rows () throws GLib.Error {
    double[] sums = {};

    foreach (var row in range ())
        sums += row.sum ().item_double ();
    if (sums.length != 2 || sums[0] != 3 || sums[1] != 12)
        throw new IOError.FAILED ("other rows");
    foreach (var row in GTorch.zeros ({ 0, 2 }))
        throw new IOError.FAILED ("a row: %s", row.to_string ());
    refused (GTorch.Error.INDEX, "without dimensions", () => {
        foreach (var row in GTorch.zeros ({}))
            row.release ();
    });
}

void in_finds_elements () throws GLib.Error {
    if (!(5 in range ()) || 6 in range ())
        throw new IOError.FAILED ("another answer");
}

void lists_have_a_type () throws GLib.Error {
    var net = new Sequential ();
    uint n = 0;
    int64 elements = 0;

    net.append (new Linear (2, 3));
    net.append (new ReLU ());
    foreach (var layer in net) {
        n++;
        layer.eval ();
    }
    foreach (var parameter in net.get_parameters ())
        elements += parameter.get_numel ();
    if (n != 2 || net.size != 2 || elements != 9 || !(net[1] is ReLU) || net[0].training)
        throw new IOError.FAILED ("%u modules, %s elements", n, elements.to_string ());
    var inner = new Sequential ();
    inner.append (net);
    if (inner.get_modules ().size != 4 || inner.get_children ()[0] != net)
        throw new IOError.FAILED ("other modules");
    foreach (var device in DeviceManager.get_default ())
        if (device.get_device_type () == DeviceType.CPU)
            return;
    throw new IOError.FAILED ("no CPU");
}

void arguments_have_defaults () throws GLib.Error {
    var x = range ();
    var net = new Sequential ();

    equal (x.sum (), { 15 }, {});
    equal (x.sum ({ 0 }), { 3, 5, 7 }, { 3 });
    equal (x.add (x), { 0, 2, 4, 6, 8, 10 }, { 2, 3 });
    equal (x.to (DType.FLOAT32).softmax (-1).sum ().round (), { 2 }, {});
    equal (GTorch.conv2d (GTorch.ones ({ 1, 1, 3, 3 }), GTorch.ones ({ 1, 1, 3, 3 })), { 9 }, { 1, 1, 1, 1 });
    equal (new Tensor.from_ints ({ 1, 2 }, { 2 }).clamp_int (2), { 2, 2 }, { 2 });
    net.append (new Linear (3, 1));
    var adam = new Adam (net.get_parameters ());
    if (adam.learning_rate != 0.001 || new Dropout ().p != 0.5 || new Event ().flags != EventFlags.NONE)
        throw new IOError.FAILED ("other defaults");
    net.forward (x.to (DType.FLOAT32)).sum ().backward ();
    adam.step ();
    adam.zero_grad ();
    var stream = new GTorch.Stream ();
    stream.synchronize ();
}

void layers_take_all_arguments () throws GLib.Error {
    var conv = Conv2d.create (1, 4, { 3 }, { 2 }, { 1 });

    if (conv.to_string () != "Conv2d(1, 4, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))")
        throw new IOError.FAILED (conv.to_string ());
    refused (GTorch.Error.INVALID, "out_channels must be at least 1", () => Conv2d.create (1, -4, { 3 }));
}

void stores_have_keys () throws GLib.Error {
    Store store = new HashStore ();

    store["k"] = new Bytes ({ 1, 2 });
    store.set ("n", new Bytes ({ 3 }), null);
    if (store["k"].get_size () != 2 || store["n"][0] != 3)
        throw new IOError.FAILED ("other values");
    store.set_timeout (0);
    try {
        var none = store["none"];
        throw new IOError.FAILED ("%s is there", (string) none.get_data ());
    } catch (IOError.TIMED_OUT error) {
    }
}

int main () {
    choose_device ();
    test ("integers_select_parts", integers_select_parts);
    test ("items_of_several_types_are_combined", items_of_several_types_are_combined);
    test ("parts_are_views", parts_are_views);
    test ("parts_are_written", parts_are_written);
    test ("large_integers_are_written_exactly", large_integers_are_written_exactly);
    test ("errors_name_the_item", errors_name_the_item);
    test ("foreach_visits_rows", foreach_visits_rows);
    test ("in_finds_elements", in_finds_elements);
    test ("lists_have_a_type", lists_have_a_type);
    test ("arguments_have_defaults", arguments_have_defaults);
    test ("layers_take_all_arguments", layers_take_all_arguments);
    test ("stores_have_keys", stores_have_keys);
    print ("1..%d\n", n_cases);
    return failed ? 1 : 0;
}
