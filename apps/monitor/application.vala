/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* GTorch Monitor shows devices and the programs that use them. */

namespace GTorchMonitor {
    public class Application : Adw.Application {
        public Application () {
            Object (application_id: APP_ID, flags: ApplicationFlags.HANDLES_OPEN,
                    resource_base_path: "/org/gtorch/Monitor");
        }

        construct {
            add_main_option ("version", 0, OptionFlags.NONE, OptionArg.NONE,
                             _("Print the version and exit"), null);
        }

        public override int handle_local_options (VariantDict options) {
            if (!options.contains ("version"))
                return -1;
            print ("gtorch-monitor %s\n", VERSION);
            return 0;
        }

        public override void startup () {
            base.startup ();
            GTorchGtk.init ();
            var about = new SimpleAction ("about", null);
            var quit_action = new SimpleAction ("quit", null);

            about.activate.connect (show_about);
            quit_action.activate.connect (() => quit ());
            add_action (about);
            add_action (quit_action);
            set_accels_for_action ("app.quit", { "<Primary>q" });
            set_accels_for_action ("win.open", { "<Primary>o" });
            set_accels_for_action ("win.save-profile", { "<Primary>s" });
            set_accels_for_action ("window.close", { "<Primary>w" });
        }

        private Window get_window () {
            return active_window as Window ?? new Window (this);
        }

        public override void activate () {
            get_window ().present ();
        }

        public override void open (File[] files, string hint) {
            var window = get_window ();

            foreach (var file in files)
                window.open_profile (file);
            window.present ();
        }

        private void show_about () {
            var window = new Adw.AboutWindow () {
                transient_for = active_window,
                application_name = _("GTorch Monitor"),
                application_icon = APP_ID,
                developer_name = _("The GTorch authors"),
                version = VERSION,
                license_type = Gtk.License.LGPL_2_1,
                comments = _("Shows devices and the programs that compute on them."),
            };

            window.present ();
        }
    }
}

int main (string[] args) {
    Intl.setlocale (LocaleCategory.ALL, "");
    Intl.bindtextdomain (GTorchMonitor.GETTEXT_PACKAGE, GTorchMonitor.LOCALE_DIR);
    Intl.bind_textdomain_codeset (GTorchMonitor.GETTEXT_PACKAGE, "UTF-8");
    Intl.textdomain (GTorchMonitor.GETTEXT_PACKAGE);
    return new GTorchMonitor.Application ().run (args);
}
