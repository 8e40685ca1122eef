/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Profiles of programs in Vala. */

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

ProfileRow? find (ProfileList list, string key) {
    for (uint i = 0; i < list.get_n_items (); i++) {
        var row = (ProfileRow) list.get_item (i);

        if (row.key == key)
            return row;
    }
    return null;
}

void ranges_contain_operations () throws GLib.Error {
    var profiler = new Profiler () { record_shapes = true };
    var x = ones ({ 2, 2 });

    profiler.start ();
    {
        var range = new ProfileRange ("a range");

        x.exp ();
        range.end ();
    }
    record_function ("another", () => {
        x.sin ();
        return true;
    });
    profiler.stop ();
    var averages = profiler.key_averages ();
    assert (find (averages, "exp").count == 1);
    assert (find (averages, "a range").is_user_annotation);
    assert (find (averages, "another").cpu_time_total >= find (averages, "sin").cpu_time_total);
    assert (averages.table ("count").contains ("# of Calls"));
}

void events_are_a_tree () throws GLib.Error {
    var profiler = new Profiler () { with_modules = true };
    var layer = new Linear (2, 3);
    var x = ones ({ 2, 2 });

    profiler.start ();
    layer.forward (x);
    profiler.stop ();
    var call = find (profiler.events (), "nn.Module: Linear_0");
    assert (call.kind == ProfileKind.MODULE && call.module_path == "");
    var inside = (ProfileRow) call.dup_children ().get_item (0);
    assert (inside.key == "linear" && inside.parent_position == call.position);
    assert (inside.dup_parent ().id == call.id);
    assert (new ProfileList.from_rows ({ inside }).total_average ().count == 1);
}

void schedules_are_followed () throws GLib.Error {
    var profiler = new Profiler () { wait = 1, warmup = 1, active = 1 };
    int n_ready = 0;

    profiler.trace_ready.connect (() => n_ready++);
    profiler.start ();
    for (int i = 0; i < 6; i++)
        profiler.step ();
    profiler.stop ();
    assert (n_ready == 2);
}

void mistakes_are_errors () throws GLib.Error {
    try {
        new Profiler ().stop ();
        assert_not_reached ();
    } catch (GTorch.Error error) {
        assert (error is GTorch.Error.INVALID);
    }
}

int main () {
    test ("ranges_contain_operations", ranges_contain_operations);
    test ("events_are_a_tree", events_are_a_tree);
    test ("schedules_are_followed", schedules_are_followed);
    test ("mistakes_are_errors", mistakes_are_errors);
    print ("1..%d\n", n_cases);
    return failed ? 1 : 0;
}
