// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Modules and optimizers.

/* exported setup */

function setup(_GTorch) {
}
