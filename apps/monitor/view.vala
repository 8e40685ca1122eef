/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Parts of pages that show one of several things: that they wait, that there is nothing, or what there is. */

namespace GTorchMonitor {
    public interface Staged : Gtk.Widget {
        /* What is shown: "waiting", or one of the names that the part gives to what it shows. */
        public abstract string stage { get; }
    }

    public abstract class View : Adw.Bin, Staged {
        public string stage { get { return stack.visible_child_name ?? ""; } }

        protected Gtk.Stack stack { get; default = new Gtk.Stack (); }

        construct {
            stack.notify["visible-child-name"].connect (() => notify_property ("stage"));
            child = stack;
        }
    }

    /* Shown until a program has answered. */
    public Gtk.Widget make_waiting (Program program) {
        var page = new Adw.StatusPage () { icon_name = "content-loading-symbolic" };

        show_waiting (page, program);
        program.notify["is-gone"].connect ((object, spec) => show_waiting (page, (Program) object));
        program.notify["is-silent"].connect ((object, spec) => show_waiting (page, (Program) object));
        return page;
    }

    private void show_waiting (Adw.StatusPage page, Program program) {
        page.title = program.is_gone ? _("The Program Has Ended") : _("Waiting for the Program");
        page.description = program.is_gone ? _("It had not answered before.")
                         : program.is_silent ? _("It does not answer.") : _("It has not answered yet.");
    }
}
