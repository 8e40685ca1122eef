/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Private pools, memory without tensors and sources of memory in Vala, on the driver of tests/fake-cuda. */

using GTorch;

/* Hands out addresses and counts the bytes that are in use. */
class Shelf : GTorch.MemorySource {
    public uint64 held = 0;
    private uint64 next = 1 << 20;

    public override uint64 allocate (Device device, uint64 n_bytes, uint64 stream) throws GLib.Error {
        uint64 address = next;

        if (n_bytes > 100 << 20)
            throw new IOError.NO_SPACE ("the shelf is full");
        next += n_bytes;
        held += n_bytes;
        return address;
    }

    public override void release (Device device, uint64 address, uint64 n_bytes, uint64 stream) {
        held -= n_bytes;
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

Tensor zeros (Device device) throws GLib.Error {
    int64[] shape = { 1000 };

    return GTorch.zeros (shape, DType.FLOAT32, device);
}

void guards_send_memory_to_a_pool () throws GLib.Error {
    var device = Device.cuda (0);
    var pool = new MemoryPool (device);
    var guard = new MemoryPoolGuard (pool);
    var inside = zeros (device);

    guard.end ();
    check (pool.allocated == 4096, "one tensor is in it");
    zeros (device);
    check (pool.peak_allocated == 4096, "and no other");
    check (inside.get_numel () == 1000, "it is whole");
}

void a_function_runs_in_a_pool () throws GLib.Error {
    var device = Device.cuda (0);
    var pool = new MemoryPool (device);

    pool.run ((given) => {
        zeros (device);
        return true;
    });
    check (pool.peak_allocated == 4096, "one tensor was in it");
    try {
        pool.run ((given) => {
            throw new IOError.BUSY ("from within");
        });
        check (false, "errors come through");
    } catch (IOError.BUSY error) {
        check (error.message == "from within", "as they are");
    }
}

void memory_without_a_tensor () throws GLib.Error {
    var block = Device.cuda (0).get_allocator ().alloc (5000, null);

    check (block.size == 5000 && block.address > 0, "there is memory");
    block.release ();
    check (block.address == 0, "it is gone");
}

void sources_can_be_written_in_vala () throws GLib.Error {
    var device = Device.cuda (1);
    var shelf = new Shelf ();

    device.get_allocator ().set_source (shelf);
    var block = device.get_allocator ().alloc (1000, null);
    check (shelf.held == 1024 && block.address == 1 << 20, "it was asked");
    block.release ();
    check (shelf.held == 0, "everything came back");
    try {
        device.get_allocator ().alloc (101 << 20, null);
        check (false, "errors come through");
    } catch (IOError.NO_SPACE error) {
        check (error.message == "the shelf is full", "as they are");
    }
}

int main () {
    test ("guards_send_memory_to_a_pool", guards_send_memory_to_a_pool);
    test ("a_function_runs_in_a_pool", a_function_runs_in_a_pool);
    test ("memory_without_a_tensor", memory_without_a_tensor);
    test ("sources_can_be_written_in_vala", sources_can_be_written_in_vala);
    print ("1..%d\n", n_cases);
    return failed ? 1 : 0;
}
