/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Makes the device that GTORCH_TEST_DEVICE names the default one, or skips all tests if it is missing. */
void choose_device () {
    unowned string? name = Environment.get_variable ("GTORCH_TEST_DEVICE");
    int64[] shape = { 5 };

    if (name == null || name == "")
        return;
    try {
        var device = new GTorch.Device.from_string (name);

        GTorch.set_default_device (device);
        GTorch.full (shape, 2, GTorch.DType.FLOAT32, null);
    } catch (GLib.Error error) {
        print ("1..0 # SKIP %s\n", error.message);
        Process.exit (0);
    }
}
