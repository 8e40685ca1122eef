/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Threads of one program that are the ranks of a group, from Vala, on the driver of tests/fake-cuda. */

using GTorch;

const int N = 2;

float[] found;
string? failure = null;

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
