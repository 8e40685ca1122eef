/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Modules written in Vala, their state and files, optimizers. */

using GTorch;

class Net : GTorch.Module {
    public Linear first;
    public Linear second;
    public GTorch.Parameter scale;

    public Net () throws GLib.Error {
        int64[] one = { 1 };

        first = new Linear (2, 8);
        second = (Linear) Object.new (typeof (Linear), "in-features", (int64) 8, "out-features", (int64) 1,
            "has-bias", false);
        second.check ();
        scale = new GTorch.Parameter (GTorch.ones (one, DType.FLOAT32, null), true);
        register_module ("first", first);
        register_module ("second", second);
        register_parameter ("scale", scale);
    }

    public override Tensor forward (Tensor x) throws GLib.Error {
        return second.forward (first.forward (x).tanh ()).mul (scale);
    }
}

class Broken : GTorch.Module {
    public override Tensor forward (Tensor x) throws GLib.Error {
        throw new IOError.BUSY ("from within");
    }
}

class Cube : GTorch.Function {
    public override GenericArray<Tensor> forward (FunctionContext context, Tensor[] inputs)
            throws GLib.Error {
        var outputs = new GenericArray<Tensor> ();

        context.save_for_backward (inputs);
        outputs.add (inputs[0].mul (inputs[0]).mul (inputs[0]));
        return outputs;
    }

    public override GenericArray<Tensor> backward (FunctionContext context, Tensor[] grads)
            throws GLib.Error {
        var outputs = new GenericArray<Tensor> ();
        var x = context.get_saved_tensors ()[0];

        outputs.add (grads[0].mul (x).mul (x).mul_scalar (3));
        return outputs;
    }
}

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

void check (bool condition, string what) throws GLib.Error {
    if (!condition)
        throw new IOError.FAILED ("not so: " + what);
}

bool same (Tensor a, Tensor b) throws GLib.Error {
    double[] left = a.to_doubles (), right = b.to_doubles ();

    for (int i = 0; i < left.length; i++)
        if (left[i] != right[i])
            return false;
    return left.length == right.length;
}

Tensor random_rows (int64 rows) throws GLib.Error {
    int64[] shape = { rows, 2 };

    return GTorch.randn (shape, DType.FLOAT32, null, null);
}

void members_belong_to_the_module () throws GLib.Error {
    var net = new Net ();
    string[] names = net.get_parameter_names (true);

    check (names.length == 4, "four parameters");
    check ("first.weight" in names && "second.weight" in names && "scale" in names, "names");
    check (net.get_parameters (true).get_n_items () == 4, "four in the list");
}

void forward_in_vala_is_called_from_c () throws GLib.Error {
    var net = new Net ();
    GTorch.Module[] parts = { net, new ReLU () };
    var chain = new Sequential.from_modules (parts);
    var x = random_rows (3);

    check (same (chain.forward (x), net.forward (x).relu ()), "equal results");
}

void an_error_arrives_where_the_module_was_called () throws GLib.Error {
    GTorch.Module[] parts = { new Broken () };
    var chain = new Sequential.from_modules (parts);

    try {
        chain.forward (random_rows (1));
    } catch (IOError.BUSY error) {
        check ("from within" in error.message, error.message);
        return;
    }
    check (false, "an error");
}

void an_error_of_the_library_passes_through () throws GLib.Error {
    int64[] shape = { 3, 5 };

    try {
        new Net ().forward (GTorch.zeros (shape, DType.FLOAT32, null));
    } catch (GTorch.Error error) {
        check (error is GTorch.Error.SHAPE && "[3, 5]" in error.message, error.message);
        return;
    }
    check (false, "an error");
}

/* Each group has the settings that it is given, and the rest from the optimizer. */
void hooks_of_nodes_replace_gradients () throws GLib.Error {
    var x = GTorch.ones ({ 2 });
    x.set_requires_grad (true);
    var y = x.mul_scalar (3);
    var node = y.dup_grad_node ();
    uint n = 0;
    node.register_hook ((node, inputs, outputs) => {
        var list = new GenericArray<Tensor> ();
        list.add (inputs[0].mul_scalar (10));
        n++;
        return list;
    });
    var id = node.register_prehook ((node, outputs) => {
        n++;
        return null;
    });
    y.sum ().backward ();
    check (n == 2 && x.grad.get ("0").item_double () == 30, "the gradient is not that of the hook");
    check (node.remove_hook (id) && !node.remove_hook (id), "the hook was not removed");
}

void groups_have_settings () throws GLib.Error {
    var first = new ListStore (typeof (Tensor));
    var second = new ListStore (typeof (Tensor));
    first.append (new Linear (2, 1).weight);
    second.append (new Linear (2, 1).weight);
    var adam = new Adam (first, 0.05);
    var group = new ParamGroup (second, 0.5, 0);
    group.set_setting ("betas", { 0.5, 0.25 });
    adam.add_param_group (group);
    var betas = group.get_setting ("betas");
    check (betas.length == 2 && betas[0] == 0.5 && betas[1] == 0.25, "the betas of a group");
    check (group.get_setting ("eps")[0] == adam.eps, "a setting of the optimizer");
    check (adam.get_default ("betas")[1] == 0.999, "a default");
    adam.beta1 = 0.75;
    check (group.get_setting ("beta1")[0] == 0.75, "a setting of all groups");
    try {
        group.set_setting ("momentum", { 0.5 });
        check (false, "Adam has no momentum");
    } catch (GTorch.Error error) {
        check (error is GTorch.Error.NOT_FOUND, error.message);
    }
    var made = (SGD) GLib.Object.new (typeof (SGD), "learning-rate", 0.25);
    check (made.learning_rate == 0.25, "the learning rate for later groups");
}

void optimizers_learn () throws GLib.Error {
    GTorch.manual_seed (3);
    var net = new Net ();
    var x = random_rows (64);
    int64[] columns = { 1 };
    var y = x.sum (columns, true, DType.NONE).mul_scalar (0.5);
    var adam = new Adam (net.get_parameters (true), 0.05);
    var loss_of = new MSELoss ();
    double first = 0, last = 0;

    for (int i = 0; i < 60; i++) {
        adam.zero_grad (true);
        var loss = loss_of.forward (net.forward (x), y);
        loss.backward (null, false, false);
        adam.step ();
        last = loss.item_double ();
        if (i == 0)
            first = last;
    }
    check (last < 0.1 * first, "%g after %g".printf (last, first));
}

void state_goes_through_a_file () throws GLib.Error {
    var a = new Net ();
    var b = new Net ();
    var x = random_rows (2);
    var output = new MemoryOutputStream.resizable ();
    HashTable<string, string> metadata;

    check (!same (a.forward (x), b.forward (x)), "different at first");
    safetensors_save (a.state_dict (), null, output, null, null);
    output.close ();
    var bytes = output.steal_as_bytes ();
    var input = new MemoryInputStream.from_bytes (bytes);
    b.load_state_dict (safetensors_load (input, null, out metadata, null, null), true);
    check (same (a.forward (x), b.forward (x)), "equal after loading");

    try {
        var cut = new MemoryInputStream.from_bytes (bytes.slice (0, bytes.length - 3));
        safetensors_load (cut, null, out metadata, null, null);
    } catch (GTorch.Error error) {
        check (error is GTorch.Error.FORMAT && "cut short" in error.message, error.message);
        return;
    }
    check (false, "an error");
}

void missing_state_is_an_error () throws GLib.Error {
    var state = new HashTable<string, Tensor> (str_hash, str_equal);

    state["nobody"] = random_rows (1);
    try {
        new Net ().load_state_dict (state, true);
    } catch (GTorch.Error error) {
        check ("nobody" in error.message, error.message);
        return;
    }
    check (false, "an error");
}

void a_function_of_vala_is_differentiated () throws GLib.Error {
    double[] values = { 1, -2 };
    int64[] shape = { 2 };
    var x = new Tensor.from_doubles (values, shape, DType.FLOAT64, null);
    Tensor[] inputs = { x };
    var cube = new Cube ();

    x.set_requires_grad (true);
    var y = cube.apply (inputs)[0];
    y.sum (null, false, DType.NONE).backward (null, false, false);
    check (x.get_grad ().to_doubles ()[1] == 12, "the gradient");
    check (gradcheck_function (cube, inputs, 1e-6, 1e-5, 1e-3), "gradcheck");
}

void autocast_is_a_guard () throws GLib.Error {
    var x = random_rows (2);
    var type = x.get_device ().get_device_type ();

    {
        var guard = new AutocastGuard (type, DType.BFLOAT16, true, true);

        check (x.mm (x).get_dtype () == DType.BFLOAT16, "products are of bfloat16");
        guard.end ();
    }
    check (x.mm (x).get_dtype () == DType.FLOAT32, "and of float32 behind it");
    GTorch.autocast_run (type, DType.FLOAT16, true, true, () => {
        check (x.mm (x).get_dtype () == DType.FLOAT16, "and of float16 in a function");
        return true;
    });
}

void gradients_are_scaled () throws GLib.Error {
    var scaler = new GradScaler ();
    int64[] two = { 2 };
    var weight = GTorch.ones (two, DType.FLOAT32, null);
    var list = new GLib.ListStore (typeof (Tensor));

    weight.set_requires_grad (true);
    list.append (weight);
    var optimizer = new SGD (list, 0.5, 0);
    scaler.scale (weight.sum ({}, false, DType.NONE)).backward (null, false, false);
    check (scaler.step (optimizer), "a step");
    check (scaler.update (null), "an update");
    check (weight.to_doubles ()[0] == 0.5, "the gradient was 1");
    check (scaler.get_scale () == 65536, "the scale");
    check (scaler.state_dict ().size () == 5, "five numbers");
}

void modules_and_functions_are_replayed_as_graphs () throws GLib.Error {
    var net = new Net ();
    var x = random_rows (4);
    var expected = net.forward (x).clone ();
    Tensor[] samples = { x };
    Tensor[] both = { x, x };
    var graphed = new GraphedModule (net, samples);
    var product = new GraphedModule.for_func ((inputs) => {
        var outputs = new GenericArray<Tensor> ();

        outputs.add (inputs[0].mul (inputs[1]));
        return outputs;
    }, both);
    GraphedModule[] callables = { graphed, product };

    make_graphed_callables (callables, null);
    check (same (graphed.forward (x), expected), "the output");
    graphed.forward (x).sum (null, false, DType.NONE).backward (null, false, false);
    check (net.scale.get_grad () != null, "a gradient");
    check (same (product.run (both)[0], x.mul (x)), "the product");
}

void layers_take_several_tensors () throws GLib.Error {
    int64[] left = { 5, 3 };
    int64[] right = { 5, 2 };
    var x = GTorch.ones (left, DType.FLOAT32, null);
    var y = GTorch.ones (right, DType.FLOAT32, null);
    var layer = new Bilinear (3, 2, 4);
    var loss = new TripletMarginLoss ();

    check (layer.forward (x, y).get_numel () == 20, "the size");
    check (layer.forward_many ({ x, y }).get_numel () == 20, "the size by forward_many");
    check (loss.forward (x, x, x).item_double () == 1, "the loss");
    try {
        loss.forward_many ({ x, x });
        check (false, "an error");
    } catch (GLib.Error error) {
        check (error.message.has_prefix ("TripletMarginLoss: forward takes 3 tensors, anchor, positive and"),
            error.message);
    }
}

void lazy_layers_get_their_size_from_the_input () throws GLib.Error {
    int64[] shape = { 2, 3 };
    var layer = new LazyLinear (4);
    LinearBase ordinary = layer;

    check (layer.has_uninitialized_params () && is_lazy (layer.weight), "it waits");
    try {
        new SGD (layer.get_parameters (true), 0.1, 0);
        check (false, "an optimizer got parameters without elements");
    } catch (GTorch.Error error) {
        check (error is GTorch.Error.INVALID, error.message);
    }
    layer.forward (GTorch.ones (shape, DType.FLOAT32, null));
    check (ordinary.in_features == 3, "the size is that of the input");
    check (ordinary.to_string () == "Linear(in_features=3, out_features=4, bias=True)",
        ordinary.to_string ());
}

void lists_of_modules_are_models () throws GLib.Error {
    var list = new ModuleList.from_modules ({ new Linear (1, 2), new ReLU () });
    var table = new ModuleDict ();

    list.append (new ReLU ());
    list.remove (0);
    check (list.get_n_items () == 2 && list.get_item (0) is ReLU, "the modules");
    check (list.to_string () == "ModuleList(\n  (0-1): 2 x ReLU()\n)", list.to_string ());
    table.register_module ("list", list);
    check (table.get_module ("list.1") is ReLU, "a path");
}

Tensor gradient (Tensor x, Tensor y) throws GLib.Error {
    x.set_grad (null);
    y.sum (null, false, DType.NONE).backward (null, false, false);
    return x.get_grad ();
}

void saved_tensors_are_packed () throws GLib.Error {
    var x = random_rows (4);
    int packed = 0, unpacked = 0;
    Tensor y;

    x.set_requires_grad (true);
    var guard = saved_tensors_hooks ((tensor) => {
        packed++;
        return tensor.clone ();
    }, (value) => {
        unpacked++;
        return (Tensor) value;
    });
    y = x.mul (x).exp ();
    guard.end ();
    check (packed == 3 && unpacked == 0, "packed");
    check (same (gradient (x, y), gradient (x, x.mul (x).exp ())), "the gradient");
    check (unpacked == 3, "unpacked");
    guard = disable_saved_tensors_hooks ("not here");
    try {
        save_on_cpu (false);
        check (false, "hooks that are refused");
    } catch (GTorch.Error error) {
        check (error is GTorch.Error.AUTOGRAD, error.message);
    }
    guard.end ();
}

void modules_and_functions_are_computed_again () throws GLib.Error {
    var net = new Net ();
    var x = random_rows (4);
    Tensor[] inputs = { x };
    Tensor expected;
    int calls = 0;

    x.set_requires_grad (true);
    expected = gradient (x, net.forward (x));
    foreach (var is_reentrant in new bool[] { false, true }) {
        calls = 0;
        var outputs = checkpoint ((given) => {
            var list = new GenericArray<Tensor> ();

            calls++;
            list.add (net.forward (given[0]));
            return list;
        }, inputs, is_reentrant, true, true, true);
        check (same (gradient (x, outputs[0]), expected), "the gradient of a function");
        check (calls == 2, "two calls");
        check (same (gradient (x, net.checkpoint (inputs, is_reentrant, true, true, true)), expected),
            "the gradient of a module");
        GTorch.Module[] parts = { net.first, net.second };
        check (same (gradient (x, checkpoint_sequential (parts, 2, x, is_reentrant, true)),
            gradient (x, net.second.forward (net.first.forward (x)))), "the gradient of a chain");
    }
}

GenericArray<Tensor> cube (Tensor[] inputs) throws GLib.Error {
    var list = new GenericArray<Tensor> ();

    list.add (inputs[0].mul (inputs[0]).mul (inputs[0]));
    return list;
}

void functions_have_derivatives () throws GLib.Error {
    double[] numbers = { 1, 2 };
    int64[] shape = { 2 };
    var x = new Tensor.from_doubles (numbers, shape, DType.FLOAT64, null);
    Tensor[] inputs = { x };
    GenericArray<weak Tensor> products;

    var blocks = autograd_jacobian (cube, inputs, false, false);
    check (blocks[0].to_doubles ()[3] == 12, "the Jacobian");
    var outputs = autograd_jvp (cube, inputs, inputs, false, false, out products);
    check (outputs[0].to_doubles ()[1] == 8 && products[0].to_doubles ()[1] == 24, "a product");
}

void dual_tensors_have_tangents () throws GLib.Error {
    double[] numbers = { 1, 2 };
    double[] directions = { 3, -1 };
    int64[] shape = { 2 };
    var x = new Tensor.from_doubles (numbers, shape, DType.FLOAT64, null);
    var direction = new Tensor.from_doubles (directions, shape, DType.FLOAT64, null);
    Tensor? tangent;
    bool is_refused = false;

    check (forward_ad_enter_dual_level () == 0 && forward_ad_has_dual_level (), "a level");
    var dual = forward_ad_make_dual (x, direction);
    var cube = dual.mul (dual).mul (dual);
    var primal = forward_ad_unpack_dual (cube, out tangent);
    check (primal.to_doubles ()[1] == 8, "the value");
    check (tangent != null && tangent.to_doubles ()[0] == 9, "the tangent");
    check (tangent.to_doubles ()[1] == -12, "the second element of the tangent");
    forward_ad_unpack_dual (x, out tangent);
    check (tangent == null, "no tangent");
    try {
        forward_ad_make_dual (x, direction.sum (null, false, DType.NONE));
    } catch (GLib.Error error) {
        is_refused = true;
    }
    check (is_refused, "a tangent of another shape");
    is_refused = false;
    try {
        dual.heaviside (x);
    } catch (GLib.Error error) {
        is_refused = error.message.has_prefix ("heaviside: the tangent cannot be computed");
    }
    check (is_refused, "an operation without a derivative");
    forward_ad_exit_dual_level ();
    forward_ad_unpack_dual (cube, out tangent);
    check (tangent == null && !forward_ad_has_dual_level (), "the end of the level");
}

void layers_enlarge_by_several_factors () throws GLib.Error {
    double[] numbers = { 0, 1, 2, 3 };
    int64[] shape = { 1, 1, 2, 2 };
    double[] both = { 1, 2 };
    double[] wrong = { 1, 0 };
    var x = new Tensor.from_doubles (numbers, shape, DType.FLOAT64, null);
    var layer = (Upsample) Object.new (typeof (Upsample), "scale-factor", new Factors (both));
    bool is_refused = false;

    layer.check ();
    var y = layer.forward (x).to_doubles ();
    check (y.length == 8 && y[1] == 0 && y[2] == 1 && y[7] == 3, "the values");
    check (layer.scale_factor.get_values ()[1] == 2, "the factors");
    try {
        ((Upsample) Object.new (typeof (Upsample), "scale-factor", new Factors (wrong))).check ();
    } catch (GLib.Error error) {
        is_refused = error.message.contains ("scale_factor");
    }
    check (is_refused, "a factor of 0");
}

int main () {
    choose_device ();
    print ("1..21\n");
    test ("members_belong_to_the_module", members_belong_to_the_module);
    test ("forward_in_vala_is_called_from_c", forward_in_vala_is_called_from_c);
    test ("an_error_arrives_where_the_module_was_called", an_error_arrives_where_the_module_was_called);
    test ("an_error_of_the_library_passes_through", an_error_of_the_library_passes_through);
    test ("hooks_of_nodes_replace_gradients", hooks_of_nodes_replace_gradients);
    test ("groups_have_settings", groups_have_settings);
    test ("optimizers_learn", optimizers_learn);
    test ("state_goes_through_a_file", state_goes_through_a_file);
    test ("missing_state_is_an_error", missing_state_is_an_error);
    test ("a_function_of_vala_is_differentiated", a_function_of_vala_is_differentiated);
    test ("autocast_is_a_guard", autocast_is_a_guard);
    test ("gradients_are_scaled", gradients_are_scaled);
    test ("layers_take_several_tensors", layers_take_several_tensors);
    test ("lazy_layers_get_their_size_from_the_input", lazy_layers_get_their_size_from_the_input);
    test ("lists_of_modules_are_models", lists_of_modules_are_models);
    test ("modules_and_functions_are_replayed_as_graphs", modules_and_functions_are_replayed_as_graphs);
    test ("saved_tensors_are_packed", saved_tensors_are_packed);
    test ("modules_and_functions_are_computed_again", modules_and_functions_are_computed_again);
    test ("functions_have_derivatives", functions_have_derivatives);
    test ("dual_tensors_have_tangents", dual_tensors_have_tangents);
    test ("layers_enlarge_by_several_factors", layers_enlarge_by_several_factors);
    return failed ? 1 : 0;
}
