/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A program that exports itself. The view that is seen asks it once a second, and not before the last answer
 * has come. */

namespace GTorchMonitor {
    public class ProgramPage : Adw.Bin, Staged {
        const uint INTERVAL = 1000; /* ms */

        public Program program { get; construct; }
        public Adw.ViewStack views { get; default = new Adw.ViewStack (); }

        public string stage { get { return (views.visible_child as Staged)?.stage ?? ""; } }
        /* The profile that the program has given, compressed by gzip. */
        public Bytes? profile_text { get { return profile.packed; } }
        public ProfileView profile_view { get { return profile.view; } }

        private ScalarsView scalars;
        private ParametersView parameters;
        private MemoryView memory;
        private RecordedProfile profile;
        private bool is_asking;
        private uint timer;

        public ProgramPage (Program program) {
            Object (program: program);
        }

        construct {
            scalars = new ScalarsView (program);
            parameters = new ParametersView (program);
            memory = new MemoryView (program);
            profile = new RecordedProfile (program);
            add (scalars, "scalars", _("Numbers"), "org.gtorch.Monitor-curve-symbolic");
            add (parameters, "parameters", _("Parameters"), "org.gtorch.Monitor-parameters-symbolic");
            add (memory, "memory", _("Memory"), "org.gtorch.Monitor-memory-symbolic");
            add (profile, "profile", _("Profile"), "org.gtorch.Monitor-profile-symbolic");
            views.notify["visible-child"].connect (() => {
                notify_property ("stage");
                update.begin ();
            });
            child = views;
            map.connect (() => {
                update.begin ();
                timer = Timeout.add (INTERVAL, () => {
                    update.begin ();
                    return Source.CONTINUE;
                });
            });
            unmap.connect (() => Source.remove (timer));
        }

        private void add (Staged view, string name, string title, string icon) {
            views.add_titled (view, name, title).icon_name = icon;
            view.notify["stage"].connect (() => notify_property ("stage"));
        }

        private async void update () {
            if (is_asking || program.is_gone)
                return;
            is_asking = true;
            try {
                if (views.visible_child == scalars)
                    yield scalars.update ();
                else if (views.visible_child == parameters)
                    yield parameters.update ();
                else if (views.visible_child == memory)
                    yield memory.update ();
                else
                    yield profile.update ();
            } catch (Error error) {
                debug ("%s: %s", program.bus_name, error.message); /* it is asked again */
            }
            is_asking = false;
        }

        /* Records a profile, or ends it. */
        public void record_profile () {
            profile.press ();
        }
    }
}
