/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Several GPUs of one process from Vala, on the driver of tests/fake-cuda. */

using GTorch;

/* A class of the program's own. */
class Twice : GTorch.Module {
    private GroupNorm norm;
    public bool checks = false;

    public Twice () throws GLib.Error {
        norm = new GroupNorm (1, 2);
        register_module ("norm", norm);
    }

    public override Tensor forward (Tensor input) throws GLib.Error {
        if (input.device.get_index () == 2 && input.numel == 6)
            throw new IOError.FAILED ("three rows");
        return (checks ? norm.checkpoint ({ input }, false) : norm.forward (input)).mul_scalar (2);
    }
}

void check (bool is_right, string what) throws GLib.Error {
    if (!is_right)
        throw new IOError.FAILED ("%s", what);
}

void check_near (Tensor a, Tensor b, string what) throws GLib.Error {
    var off = a.sub (b).abs ().sum (null, false, DType.NONE).item_double ();
    check (off < 1e-4, @"$what: off by $off");
}

Tensor rows (int64 n) throws GLib.Error {
    return arange (0, 2 * n).sin ().view ({ n, 2 });
}

void run () throws GLib.Error {
    Device[] gpus = { Device.cuda (0), Device.cuda (1), Device.cuda (2) };
    var net = new Twice ();
    net.to (gpus[0]);
    var model = new DataParallel (net, gpus, gpus[1]);
    check (model.dim == 0 && model.wrapped == net && model.output_device == gpus[1], "properties");
    check (model.device_ids.get_values ().length == 3, "device_ids");
    var x = rows (7);
    var y = model.forward (x);
    check (y.device == gpus[1], "the output is elsewhere");
    var alone = net.forward (x.to_device (gpus[0]));
    check_near (y.to_device (gpus[0]), alone, "other numbers");
    y.sum ().backward ();
    check (net.get_parameter ("norm.bias").grad.sum ().item_double () == 28, "another gradient");
    var grad = net.get_parameter ("norm.weight").grad.clone ();
    net.zero_grad ();
    net.checks = true;
    model.forward (x).sum ().backward ();
    check_near (net.get_parameter ("norm.weight").grad, grad, "a gradient with a checkpoint");
    net.checks = false;
    bool is_refused = false;
    try {
        model.forward (rows (9));
    } catch (GLib.Error error) {
        is_refused = error.message == "data_parallel: on cuda:2: three rows";
    }
    check (is_refused, "no error of the third GPU");
    var replicas = replicate (net, gpus);
    var parts = comm_scatter (x, gpus);
    var outputs = parallel_apply (replicas.data, parts.data);
    check_near (comm_gather (outputs.data, 0, gpus[0]), alone, "replicas");
    var copies = comm_broadcast (x, gpus);
    check (comm_reduce_add (copies.data, gpus[2]).device == gpus[2], "sums");
}

int main () {
    print ("1..1\n");
    try {
        run ();
        print ("ok 1 - one_module_is_on_several_gpus\n");
        return 0;
    } catch (GLib.Error error) {
        print ("not ok 1 - one_module_is_on_several_gpus\n# %s\n", error.message);
        return 1;
    }
}
