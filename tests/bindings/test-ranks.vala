/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Threads of one program that are the ranks of a group, from Vala, on the driver of tests/fake-cuda. */

using GTorch;

const int N = 2;

float[] found;
string? failure = null;

/* Two layers, the first of which is computed again in the backward pass. */
class Pair : GTorch.Module {
    private Linear first;
    private Linear second;
    private bool checks;

    public Pair (bool checks) throws GLib.Error {
        this.checks = checks;
        first = new Linear (3, 5);
        second = new Linear (5, 2);
        register_module ("first", first);
        register_module ("second", second);
    }

    public override Tensor forward (Tensor input) throws GLib.Error {
        var inner = checks ? first.checkpoint ({ input }, false) : first.forward (input);
        return second.forward (inner.tanh ());
    }
}

/* The gradients of the parts of this rank, one behind the other. */
Tensor train_pair (ProcessGroup group, Device device, Pair pair, bool reshard) throws GLib.Error {
    var shards = new ModuleShards (pair, group, reshard, DType.NONE, DType.NONE, DType.NONE);
    var output = pair.forward_many ({ full ({ 2, 3 }, group.rank + 1, DType.FLOAT32, device) });
    output.square ().sum (null, false, DType.NONE).backward ();
    if (ModuleShards.find (pair.get_parameter ("first.weight")) != shards)
        throw new IOError.FAILED ("the parameters have not come back");
    Tensor[] grads = {};
    var params = pair.get_parameters ();
    for (uint i = 0; i < params.get_n_items (); i++)
        grads += ((Tensor) params.get_item (i)).grad.flatten ();
    return cat (grads, 0);
}

void check_pairs (ProcessGroup group, Device device) throws GLib.Error {
    foreach (var reshard in new bool[] { false, true }) {
        var plain = new Pair (false);
        var checked = new Pair (true);
        foreach (var name in new string[] { "first.weight", "first.bias", "second.weight", "second.bias" }) {
            checked.get_parameter (name).set_data (plain.get_parameter (name).detach ().clone ());
        }
        plain.to (device, DType.NONE);
        checked.to (device, DType.NONE);
        var wanted = train_pair (group, device, plain, reshard);
        var off = train_pair (group, device, checked, reshard).sub (wanted).abs ();
        if (off.sum (null, false, DType.NONE).item_double () != 0)
            throw new IOError.FAILED ("a checkpoint changes gradients");
        if (wanted.abs ().sum (null, false, DType.NONE).item_double () == 0)
            throw new IOError.FAILED ("there are no gradients");
    }
}

float run_rank (Store store, int rank) throws GLib.Error {
    var device = Device.cuda (rank);
    var guard = new DeviceGuard (device);
    var group = new ProcessGroup ("nccl", store, rank, N, 60, null);
    var layer = new Linear (3, 1);
    layer.to (device, DType.NONE);
    var shards = new ModuleShards (layer, group, true, DType.NONE, DType.NONE, DType.NONE);
    if (shards.replicas != null || shards.is_offloaded)
        throw new IOError.FAILED ("the parts have replicas, or are not on the device");
    var x = full ({ 4 }, rank + 1, DType.FLOAT32, device);
    group.all_reduce (x, ReduceOp.SUM).wait (-1, null);
    group.all_reduce_premul (x, 0.5).wait (-1, null);
    var result = (float) x.sum (null, false, DType.NONE).item_double ();
    var output = layer.forward (full ({ 1, 3 }, 1, DType.FLOAT32, device));
    if (output.numel != 1)
        throw new IOError.FAILED ("the layer has not computed");
    check_pairs (group, device);
    guard.end ();
    return result;
}

int main () {
    var store = new HashStore ();
    var threads = new Thread<int>[N];
    found = new float[N];
    print ("1..1\n");
    for (int i = 0; i < N; i++) {
        int rank = i;
        threads[i] = new Thread<int> ("rank", () => {
            try {
                found[rank] = run_rank (store, rank);
            } catch (GLib.Error error) {
                failure = error.message;
            }
            return 0;
        });
    }
    foreach (unowned var thread in threads)
        thread.join ();
    /* (1 + 2) · 0.5, of both ranks, four times */
    bool is_right = failure == null && found[0] == 12 && found[1] == 12;
    print ("%s 1 - threads_are_ranks\n", is_right ? "ok" : "not ok");
    if (!is_right)
        print ("# %s: %g, %g\n", failure ?? "wrong sums", found[0], found[1]);
    return is_right ? 0 : 1;
}
