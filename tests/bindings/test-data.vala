// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Data sets and loaders.

class Squares : GTorch.Dataset {
    public int64 bad = -1;

    public override int64 get_length () throws Error {
        return 5;
    }

    public override GTorch.Sample get_item (int64 index, Cancellable? cancellable) throws Error {
        if (index == bad)
            throw new FileError.NOENT ("no file %d", (int) index);
        return new GTorch.Sample.dict ({ "x", "square", null }, {
            new GTorch.Sample.tensor (GTorch.full ({ 2 }, (double) index)),
            new GTorch.Sample.int (index * index)
        });
    }
}

string ints (GTorch.Sample sample) throws Error {
    var text = new StringBuilder ();
    foreach (var value in sample.get_tensor ().to_ints ())
        text.append_printf (text.len > 0 ? " %d" : "%d", (int) value);
    return text.str;
}

void batches_by_foreach () {
    try {
        var tensors = new GTorch.TensorDataset ({
            GTorch.full ({ 6, 2 }, 1), GTorch.arange_int (0, 6, 1)
        });
        var loader = new GTorch.DataLoader (tensors, 4, false);
        var found = "";
        foreach (var batch in loader) {
            found += ints (batch[1]) + "|";
            assert (batch[0].get_tensor ().get_size (1) == 2);
            assert (ints (batch[-1]) == ints (batch[1]));
        }
        assert_cmpstr (found, CompareOperator.EQ, "0 1 2 3|4 5|");
    } catch (Error error) {
        assert_no_error (error);
    }
}

void a_class_of_the_program_with_workers () {
    try {
        var loader = (GTorch.DataLoader) Object.new (typeof (GTorch.DataLoader), "dataset", new Squares (),
            "batch-size", (int64) 2, "num-workers", 2);
        var found = "";
        foreach (var batch in loader)
            found += ints (batch.lookup ("square")) + "|";
        assert_cmpstr (found, CompareOperator.EQ, "0 1|4 9|16|");
    } catch (Error error) {
        assert_no_error (error);
    }
}

void its_errors_end_the_loop () {
    var dataset = new Squares ();
    dataset.bad = 2;
    var n = 0;
    try {
        foreach (var batch in new GTorch.DataLoader (dataset, 1, false))
            n += batch != null ? 1 : 0;
        assert_not_reached ();
    } catch (Error error) {
        assert (error is FileError.NOENT);
        assert_cmpstr (error.message, CompareOperator.EQ, "no file 2");
    }
    assert (n == 2);
}

async string read_all (GTorch.DataLoader loader) throws Error {
    var found = "";
    var iter = loader.iterate ();
    GTorch.Sample? batch;
    while ((batch = yield iter.next_async ()) != null)
        found += ints (batch.lookup ("square")) + "|";
    return found;
}

void batches_by_yield () {
    foreach (var workers in new int[] { 0, 2 }) {
        var loop = new MainLoop ();
        var loader = (GTorch.DataLoader) Object.new (typeof (GTorch.DataLoader), "dataset", new Squares (),
            "batch-size", (int64) 2, "num-workers", workers);
        read_all.begin (loader, (object, result) => {
            try {
                assert_cmpstr (read_all.end (result), CompareOperator.EQ, "0 1|4 9|16|");
            } catch (Error error) {
                assert_no_error (error);
            }
            loop.quit ();
        });
        loop.run ();
    }
}

void batches_by_signal () {
    var loop = new MainLoop ();
    var loader = new GTorch.DataLoader (new Squares (), 3, false);
    var n = 0;
    loader.batch.connect (batch => n++);
    loader.run_async.begin (null, (object, result) => {
        try {
            loader.run_async.end (result);
        } catch (Error error) {
            assert_no_error (error);
        }
        loop.quit ();
    });
    loop.run ();
    assert (n == 2);
    assert (loader.progress == 1);
}

void a_handle_gives_another_process_the_same_memory () {
    try {
        var x = GTorch.full ({ 4 }, 1);
        x.share_memory ();
        var handle = new GTorch.TensorHandle (x);
        var received = new GTorch.TensorHandle.from_bytes (handle.get_bytes (), handle.get_fds ());
        var same = received.open ();
        same.fill_inplace (3);
        assert (x.is_shared ());
        assert (x.sum (null, false, GTorch.DType.NONE).item_double () == 12);
    } catch (Error error) {
        assert_no_error (error);
    }
}

int main (string[] args) {
    Test.init (ref args);
    Test.add_func ("/GTorch/Vala/Data/batches_by_foreach", batches_by_foreach);
    Test.add_func ("/GTorch/Vala/Data/a_class_of_the_program_with_workers",
        a_class_of_the_program_with_workers);
    Test.add_func ("/GTorch/Vala/Data/its_errors_end_the_loop", its_errors_end_the_loop);
    Test.add_func ("/GTorch/Vala/Data/batches_by_yield", batches_by_yield);
    Test.add_func ("/GTorch/Vala/Data/batches_by_signal", batches_by_signal);
    Test.add_func ("/GTorch/Vala/Data/a_handle_gives_another_process_the_same_memory",
        a_handle_gives_another_process_the_same_memory);
    return Test.run ();
}
