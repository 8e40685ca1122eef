/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Devices, streams, events, copies and their errors from Vala, on the driver of tests/fake-cuda. */

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

void check (bool condition, string text) throws GLib.Error {
    if (!condition)
        throw new IOError.FAILED (text);
}

void expect_error (int code, string says, Body body) throws GLib.Error {
    try {
        body ();
    } catch (GLib.Error error) {
        check (error.domain == GTorch.Error.quark () && error.code == code && says in error.message,
               "not this error: " + error.message);
        return;
    }
    throw new IOError.FAILED ("no error: " + says);
}

Device gpu (int index) throws GLib.Error {
    return new Device.from_string ("cuda:%d".printf (index));
}

Tensor ones (int64 n, Device? device) throws GLib.Error {
    return GTorch.ones ({ n }, DType.FLOAT32, device);
}

string current () throws GLib.Error {
    return Device.get_current (DeviceType.CUDA).to_string ();
}

async void wait_for_all () throws GLib.Error {
    var x = yield ones (3, null).to_device_async (gpu (0), null);
    check (x.get_device () == gpu (0), "device");
    var there = yield x.neg ().to_device_async (Device.cpu (), null);
    check (there.is_pinned () && there.select (0, 2).item_double () == -1, "values");
    var sum = x.sum (null, false, DType.NONE);
    check ((yield sum.item_double_async (null)) == 3, "item");
    check ((yield sum.item_int_async (null)) == 3, "item as an integer");
    var target = GTorch.zeros ({ 3 }, DType.FLOAT64, null);
    yield target.copy_inplace_async (x, null);
    check (target.select (0, 1).item_double () == 1, "copy");
    var stream = new GTorch.Stream (gpu (0), 0);
    var timer = new GTorch.Timer (stream);
    timer.start ();
    check ((yield timer.stop_async (null)) >= 0, "timer");
    yield stream.synchronize_async (null);
    yield gpu (0).synchronize_async (null);
    var stopped = new Cancellable ();
    stopped.cancel ();
    try {
        yield x.to_device_async (Device.cpu (), stopped);
        check (false, "not cancelled");
    } catch (IOError.CANCELLED error) {
    }
}

int main () {
    print ("1..9\n");
    test ("gpus_are_counted_and_described", () => {
        var manager = DeviceManager.get_default ();
        check (manager.is_available () && manager.get_device_count () == 2, "count");
        check (gpu (1).name == "Fake 1" && gpu (1).compute_major == 9, "properties");
        expect_error (GTorch.Error.DEVICE, "cuda:7", () => { gpu (7); });
    });
    test ("the_current_device_and_stream_come_back", () => {
        var stream = new GTorch.Stream (gpu (0), 0);
        gpu (1).run ((device) => {
            check (current () == "cuda:1" && device.to_string () == "cuda:1", "inside");
            return true;
        });
        check (current () == "cuda:0", "outside");
        try {
            gpu (1).run ((device) => { throw new IOError.BUSY ("from inside"); });
            check (false, "no error");
        } catch (IOError.BUSY error) {
            check (current () == "cuda:0", "after an error");
        }
        stream.run ((self) => {
            check (GTorch.Stream.get_current (gpu (0)) == stream, "stream");
            return true;
        });
        check (GTorch.Stream.get_current (gpu (0)).is_default (), "default stream");
    });
    test ("cuda_without_a_number_is_the_gpu_that_is_current", () => {
        var cuda = new Device.from_string ("cuda");

        check (cuda.index == -1 && cuda != gpu (0) && cuda.resolve () == gpu (0), "cuda");
        gpu (1).run ((device) => {
            check (ones (3, cuda).get_device () == gpu (1) && cuda.name == "Fake 1", "cuda:1");
            return true;
        });
        check (ones (3, cuda).get_device () == gpu (0), "cuda:0");
        gpu (1).run_as_default ((device) => {
            check (ones (3, null).get_device () == gpu (1) && current () == "cuda:0", "default");
            return true;
        });
        check (ones (3, null).get_device () == Device.cpu (), "the CPU");
    });
    test ("guards_end_in_any_order", () => {
        var stream = new GTorch.Stream (gpu (1), 0);
        var first = new DeviceGuard (gpu (1));
        var second = new StreamGuard (stream);
        var third = no_grad ();

        first.end ();
        check (current () == "cuda:1" && !is_grad_enabled (), "two are left");
        second.end ();
        check (current () == "cuda:0" && !is_grad_enabled (), "one is left");
        third.end ();
        check (is_grad_enabled () && GTorch.Stream.get_current (gpu (1)).is_default (), "none is left");
    });
    test ("tensors_of_two_devices_do_not_meet", () => {
        var x = ones (3, gpu (0));
        expect_error (GTorch.Error.DEVICE_MISMATCH, "“other” of shape [3] is on cuda:1",
                      () => { x.add (ones (3, gpu (1)), 1); });
        var half = GTorch.full ({}, 0.5, DType.FLOAT32, null);
        uint64 available, total;
        check (gpu (0).get_memory_info (out available, out total) && available < total, "memory");
        check (x.get_device_index () == 0, "index");
        check (x.to (DType.NONE, Device.cpu (), true, false).is_pinned (), "not waiting");
        check (x.mul (half).sum (null, false, DType.NONE).item_double () == 1.5, "a number");
    });
    test ("streams_and_events_order_work", () => {
        var stream = new GTorch.Stream (gpu (0), -1);
        var start = new GTorch.Event (EventFlags.TIMING);
        var end = new GTorch.Event (EventFlags.TIMING);
        Tensor? y = null;
        start.record (stream);
        stream.run ((self) => {
            y = ones (100, gpu (0)).neg ();
            return true;
        });
        end.record (stream);
        GTorch.Stream.get_current (gpu (0)).wait_event (end);
        check (y.sum (null, false, DType.NONE).item_double () == -100, "sum");
        end.synchronize (null);
        check (start.get_elapsed_ms (end) >= 0, "time");
        stream.auto_sync = true;
        check (stream.auto_sync, "auto-sync");
    });
    test ("handles_are_for_other_processes", () => {
        var event = new GTorch.Event (EventFlags.INTERPROCESS);
        event.record (GTorch.Stream.get_current (gpu (0)));
        check (event.get_ipc_handle (null).get_size () == 64, "size");
        expect_error (GTorch.Error.INVALID, "64 bytes, not 2",
                      () => { new GTorch.Event.from_ipc_handle (gpu (0), new Bytes ({ 1, 2 })); });
    });
    test ("options_choose_the_device", () => {
        var rest = GTorch.parse_options ({ "a", "--device=cuda:1", "--", "--disable-cuda" });
        check (string.joinv (" ", rest) == "a -- --disable-cuda", "rest");
        check (GTorch.get_default_device () == gpu (1), "device");
        expect_error (GTorch.Error.DEVICE, "cuda:7",
                      () => { GTorch.parse_options ({ "--device=cuda:7" }); });
        var app = new GLib.Application (null, ApplicationFlags.NON_UNIQUE);
        GTorch.add_options (app);
        app.activate.connect (() => {});
        check (app.run ({ "program", "--disable-cuda" }) == 0, "application");
        check (GTorch.get_default_device () == Device.cpu (), "option of the application");
        GTorch.set_default_device (null);
    });
    test ("what_waits_can_be_yielded_to", () => {
        var loop = new MainLoop ();
        GLib.Error? problem = null;
        wait_for_all.begin ((source, result) => {
            try {
                wait_for_all.end (result);
            } catch (GLib.Error error) {
                problem = error;
            }
            loop.quit ();
        });
        loop.run ();
        if (problem != null)
            throw problem;
    });
    return failed ? 1 : 0;
}
