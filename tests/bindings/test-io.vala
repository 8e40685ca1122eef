/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Files of NumPy, text with delimiters and PyTorch's checkpoints in Vala. */

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

void check (bool condition, string what) throws GLib.Error {
    if (!condition)
        throw new IOError.FAILED ("not so: " + what);
}

File data (string name) {
    unowned string folder = Environment.get_variable ("G_TEST_SRCDIR");

    return File.new_for_path (Path.build_filename (folder, "io", "data", name));
}

InputStream text (string content) {
    return new MemoryInputStream.from_data (content.data);
}

void arrays_are_read_and_written () throws GLib.Error {
    var array = GTorch.npy_load_file (data ("i4-big.npy"), false, 0, null);
    var stream = new MemoryOutputStream.resizable ();

    check (array.sum ().item_int () == 7, "sum");
    GTorch.npy_save (array, stream, null);
    stream.close ();
    check (GTorch.npy_load_bytes (stream.steal_as_bytes ()).sum ().item_int () == 7, "the same");
    try {
        GTorch.npy_load_file (data ("records.npy"), false, 0, null);
        check (false, "refused");
    } catch (GTorch.Error.NOT_SUPPORTED error) {
        check ("records" in error.message, error.message);
    }
}

void archives_are_tables () throws GLib.Error {
    var table = GTorch.npz_load_file (data ("stored.npz"), true, 0, null);

    check (table.get_length () == 3 && table.contains ("x"), "three");
    check (table.lookup ("y").sum ().item_int () == 10, "sum");
    check (table.get_name (0) == "x" && table.get_name (3) == null, "names");
}

void text_is_read_as_columns () throws GLib.Error {
    var reader = new CSVReader (text ("a\tb\n1\t2\n3\tNA\n"));

    reader.set_delimiter ("\t");
    reader.set_missing (-1);
    var table = reader.read_table (0, null);
    check (table.lookup ("b").sum ().item_double () == 1, "sum");
    check (reader.read_table (0, null) == null, "the end");
}

void checkpoints_are_trees () throws GLib.Error {
    var checkpoint = CheckpointFile.load_file (data ("state.pt"), false, 0, null);
    var root = CheckpointFile.load_file (data ("nested.pt"), true, 0, null).get_root ();

    check (checkpoint.get_tensors ().lookup ("0.weight").round ().sum ().item_double () == 15, "weights");
    check (root.lookup ("epoch").get_int () == 7, "epoch");
    check (root.lookup ("base").get_tensor ().sum ().item_double () == 66, "base");
    check (root.lookup ("order").get_kind () == CheckpointKind.ORDERED_DICT, "kind");
}

void checkpoints_are_written () throws GLib.Error {
    var writer = new CheckpointWriter ();
    int[] pair = { writer.add_string ("x"), writer.add_tensor (ones ({ 2 })) };
    var root = writer.add_container (CheckpointKind.DICT, pair);
    var stream = new MemoryOutputStream.resizable ();

    writer.save (root, stream, null);
    stream.close ();
    var read = CheckpointFile.load_bytes (stream.steal_as_bytes (), 0).get_root ();
    check (read.lookup ("x").get_tensor ().sum ().item_double () == 2, "tensor");
}

async Tensor load () throws GLib.Error {
    return yield GTorch.npy_load_file_async (data ("f4.npy"), false, 0, Priority.DEFAULT, null);
}

void functions_yield () throws GLib.Error {
    var loop = new MainLoop ();
    Tensor? found = null;

    load.begin ((object, result) => {
        try {
            found = load.end (result);
        } catch (GLib.Error error) {
        }
        loop.quit ();
    });
    loop.run ();
    check (found != null && found.sum ().item_double () == 7, "sum");
}

int main () {
    print ("1..6\n");
    test ("arrays_are_read_and_written", arrays_are_read_and_written);
    test ("archives_are_tables", archives_are_tables);
    test ("text_is_read_as_columns", text_is_read_as_columns);
    test ("checkpoints_are_trees", checkpoints_are_trees);
    test ("checkpoints_are_written", checkpoints_are_written);
    test ("functions_yield", functions_yield);
    return failed ? 1 : 0;
}
