/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch-gtk/gtorch-gtk-device-panel.h>
#include <gtorch-gtk/gtorch-gtk-init.h>
#include <gtorch-gtk/gtorch-gtk-parameter-list.h>
#include <gtorch-gtk/gtorch-gtk-parameter-row.h>
#include <gtorch-gtk/gtorch-gtk-plot.h>
#include <gtorch-gtk/gtorch-gtk-tensor-paintable.h>
#include <gtorch-gtk/gtorch-gtk-trainer-progress.h>
