// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later
// Where the manuals of the libraries that GTorch builds on are found.
baseURLs = [
  ["GLib", "https://docs.gtk.org/glib/"],
  ["GObject", "https://docs.gtk.org/gobject/"],
  ["Gio", "https://docs.gtk.org/gio/"],
  ["Gdk", "https://docs.gtk.org/gdk4/"],
  ["Gtk", "https://docs.gtk.org/gtk4/"],
  ["cairo", "https://www.cairographics.org/manual/"],
  ["GTorch", "../GTorch-1/"],
  ["GTorchPlot", "../GTorchPlot-1/"],
];
