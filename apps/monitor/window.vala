/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The window: a list of devices, programs and profiles, and a page of what is selected. */

namespace GTorchMonitor {
    public class Window : Adw.ApplicationWindow {
        private Adw.Leaflet leaflet = new Adw.Leaflet () { can_navigate_back = true };
        private Gtk.ListBox list = new Gtk.ListBox ();
        private Gtk.Stack pages = new Gtk.Stack () { hexpand = true };
        private Adw.WindowTitle title_widget = new Adw.WindowTitle ("", "");
        private Adw.HeaderBar header = new Adw.HeaderBar ();
        private Adw.ViewSwitcherTitle switcher = new Adw.ViewSwitcherTitle ();
        private Adw.ViewSwitcherBar switcher_bar = new Adw.ViewSwitcherBar ();
        private ProgramList? programs;
        private uint n_profiles;
        const uint MAX_ENDED = 16; /* programs that are kept in the list */

        /* A row of the list; `section` is the heading that it is below. */
        private class Item : Gtk.ListBoxRow {
            public string id;
            public int section;
            public Gtk.Widget page;
            public Program? program;
            public bool can_be_removed { get { return program == null ? section == 2 : program.is_gone; } }

            private Gtk.Label? below;
            private Gtk.Button remove = new Gtk.Button.from_icon_name ("window-close-symbolic") {
                tooltip_text = _("Remove from the List"),
                action_name = "win.remove",
                valign = CENTER,
            };

            public Item (string id, int section, Gtk.Widget page, string icon, string title,
                         string? subtitle) {
                var box = new Gtk.Box (HORIZONTAL, 12);
                var text = new Gtk.Box (VERTICAL, 2) { valign = CENTER };
                var label = new Gtk.Label (title) { xalign = 0, ellipsize = Pango.EllipsizeMode.END };

                this.id = id;
                this.section = section;
                this.page = page;
                text.append (label);
                if (subtitle != null) {
                    below = new Gtk.Label (subtitle) { xalign = 0, ellipsize = Pango.EllipsizeMode.END };

                    below.add_css_class ("caption");
                    below.add_css_class ("dim-label");
                    text.append (below);
                }
                box.append (new Gtk.Image.from_icon_name (icon));
                text.hexpand = true;
                box.append (text);
                remove.action_target = id;
                remove.visible = can_be_removed;
                remove.add_css_class ("flat");
                box.append (remove);
                box.margin_top = box.margin_bottom = 6;
                child = box;
                tooltip_text = title;
            }

            public void show_state () {
                below.label = program.state_text ();
                remove.visible = can_be_removed;
                if (program.is_gone)
                    child.add_css_class ("dim-label");
            }

            /* Not by functions that keep the item, which keeps the program. */
            public void watch () {
                program.notify["is-gone"].connect (tell);
                program.notify["is-silent"].connect (tell);
            }

            private void tell () {
                (get_root () as Window)?.state_changed (this);
            }
        }

        public Window (Adw.Application application) {
            Object (application: application, title: _("GTorch Monitor"), icon_name: APP_ID,
                    default_width: 1120, default_height: 760);
        }

        construct {
            var back = new Gtk.Button.from_icon_name ("go-previous-symbolic") { tooltip_text = _("Back") };

            back.clicked.connect (() => leaflet.navigate (BACK));
            leaflet.bind_property ("folded", back, "visible", SYNC_CREATE);
            header.pack_start (back);
            header.title_widget = title_widget;
            switcher.bind_property ("title-visible", switcher_bar, "reveal", SYNC_CREATE);
            leaflet.append (make_sidebar ());
            leaflet.append (new Gtk.Separator (VERTICAL));
            leaflet.get_pages ().select_item (0, true);
            leaflet.append (make_content ());
            foreach_separator ();
            leaflet.bind_property ("folded", list, "selection-mode", SYNC_CREATE,
                                   (binding, from, ref to) => {
                to.set_enum (from.get_boolean () ? Gtk.SelectionMode.NONE : Gtk.SelectionMode.BROWSE);
                return true;
            });
            content = leaflet;
            add_actions ();
            add_devices ();
            watch_programs.begin ();
            show_item ((Item) list.get_row_at_index (0));
        }

        /* Only the sidebar and the content are pages. */
        private void foreach_separator () {
            var pages = leaflet.get_pages ();

            for (uint i = 0; i < pages.get_n_items (); i++) {
                var page = (Adw.LeafletPage) ((ListModel) pages).get_item (i);

                if (page.child is Gtk.Separator)
                    page.navigatable = false;
            }
        }

        private Gtk.Widget make_sidebar () {
            var box = new Gtk.Box (VERTICAL, 0) { width_request = 260 };
            var bar = new Adw.HeaderBar () { show_end_title_buttons = false };
            var menu = new Menu ();
            var section = new Menu ();

            section.append (_("_Open Profile…"), "win.open");
            section.append (_("_Save Profile…"), "win.save-profile");
            menu.append_section (null, section);
            section = new Menu ();
            section.append (_("_Remove Ended Programs"), "win.remove-ended");
            menu.append_section (null, section);
            section = new Menu ();
            section.append (_("_Keyboard Shortcuts"), "win.show-help-overlay");
            section.append (_("_About GTorch Monitor"), "app.about");
            menu.append_section (null, section);
            leaflet.bind_property ("folded", bar, "show-end-title-buttons", SYNC_CREATE);
            bar.title_widget = new Adw.WindowTitle (_("GTorch Monitor"), "");
            bar.pack_end (new Gtk.MenuButton () {
                icon_name = "open-menu-symbolic",
                menu_model = menu,
                primary = true,
                tooltip_text = _("Main Menu"),
            });
            list.add_css_class ("navigation-sidebar");
            list.set_header_func (set_heading);
            list.set_sort_func ((a, b) => ((Item) a).section - ((Item) b).section);
            list.set_placeholder (new Gtk.Label (_("There is nothing to show.")));
            list.row_activated.connect ((row) => {
                show_item ((Item) row);
                leaflet.navigate (FORWARD);
            });
            list.row_selected.connect ((row) => {
                if (row != null)
                    show_item ((Item) row);
            });
            box.append (bar);
            box.append (new Gtk.ScrolledWindow () {
                child = list,
                vexpand = true,
                hscrollbar_policy = NEVER,
            });
            box.append (make_hint ());
            return box;
        }

        private Gtk.Widget make_hint () {
            var label = new Gtk.Label (_("A program is listed here if it is started with GTORCH_EXPORT=1.")) {
                wrap = true,
                xalign = 0,
                max_width_chars = 28,
            };

            label.add_css_class ("caption");
            label.add_css_class ("dim-label");
            label.margin_top = label.margin_bottom = label.margin_start = label.margin_end = 12;
            return label;
        }

        private Gtk.Widget make_content () {
            var box = new Gtk.Box (VERTICAL, 0) { hexpand = true, width_request = 360 };

            box.append (header);
            box.append (pages);
            box.append (switcher_bar);
            return box;
        }

        private void set_heading (Gtk.ListBoxRow row, Gtk.ListBoxRow? before) {
            string[] headings = { _("Devices"), _("Programs"), _("Profiles") };
            var section = ((Item) row).section;

            if (before != null && ((Item) before).section == section) {
                row.set_header (null);
                return;
            }
            var label = make_heading (headings[section]);

            label.add_css_class ("dim-label");
            label.margin_top = 12;
            label.margin_bottom = 6;
            label.margin_start = 12;
            row.set_header (label);
        }

        /* --- items --- */

        private void add_item (Item item) {
            pages.add_child (item.page);
            list.append (item);
            if (item.page is Staged)
                item.page.notify["stage"].connect (update_states);
        }

        private void remove_item (Item item) {
            if (pages.visible_child == item.page)
                show_item ((Item) list.get_row_at_index (int.max (item.get_index () - 1, 0)));
            if (item.page is ProfileView)
                ((ProfileView) item.page).cancel ();
            list.remove (item);
            pages.remove (item.page);
            update_states ();
        }

        private void remove_ended () {
            Item? first;

            while ((first = find_ended (null)) != null)
                remove_item (first);
        }

        /* The first program of the list that has ended, and whose page is not the given one. */
        private Item? find_ended (Gtk.Widget? except, out uint n = null) {
            Item? first = null;

            n = 0;
            for (int i = 0; list.get_row_at_index (i) != null; i++) {
                var item = (Item) list.get_row_at_index (i);

                if (item.program == null || !item.program.is_gone)
                    continue;
                n++;
                if (first == null && item.page != except)
                    first = item;
            }
            return first;
        }

        private void show_item (Item? item) {
            if (item == null || pages.visible_child == item.page && title_widget.title != "")
                return;
            pages.visible_child = item.page;
            if (list.get_selected_row () != item)
                list.select_row (item);
            var page = item.page as ProgramPage;
            title_widget.title = item.tooltip_text;
            title_widget.subtitle = page != null ? page.program.state_text () : "";
            switcher.stack = page != null ? page.views : null;
            switcher_bar.stack = switcher.stack;
            switcher.title = title_widget.title;
            switcher.subtitle = title_widget.subtitle;
            header.title_widget = page != null ? (Gtk.Widget) switcher : title_widget;
            update_states ();
            header.centering_policy = page != null ? Adw.CenteringPolicy.STRICT : Adw.CenteringPolicy.LOOSE;
        }

        private void update_states () {
            var page = pages.visible_child as ProgramPage;
            var item = (Item) list.get_selected_row ();

            ((SimpleAction) lookup_action ("show")).set_state (item != null ? item.id : "");
            ((SimpleAction) lookup_action ("show-view")).set_state (
                page != null ? page.views.visible_child_name : "");
            ((SimpleAction) lookup_action ("show-profile-as")).set_state (find_profile ()?.mode ?? "");
            ((SimpleAction) lookup_action ("stage")).set_state ((pages.visible_child as Staged)?.stage ?? "");
            ((SimpleAction) lookup_action ("save-profile")).set_enabled (page != null
                                                                         && page.profile_text != null);
            ((SimpleAction) lookup_action ("remove-ended")).set_enabled (find_ended (null) != null);
        }

        private ProfileView? find_profile () {
            var page = pages.visible_child as ProgramPage;

            return page != null ? page.profile_view : pages.visible_child as ProfileView;
        }

        private Item? find (string id) {
            for (int i = 0; list.get_row_at_index (i) != null; i++) {
                var item = (Item) list.get_row_at_index (i);

                if (item.id == id)
                    return item;
            }
            return null;
        }

        private void add_devices () {
            var devices = GTorch.DeviceManager.get_default ();

            for (uint i = 0; i < devices.get_n_items (); i++) {
                var device = (GTorch.Device) ((ListModel) devices).get_item (i);
                var is_cpu = device.get_device_type () == GTorch.DeviceType.CPU;
                var icon = "org.gtorch.Monitor-%s-symbolic".printf (is_cpu ? "cpu" : "gpu");

                add_item (new Item (device.to_string (), 0, new DevicePage (device), icon, device.get_name (),
                                    device.to_string ()));
            }
        }

        private async void watch_programs () {
            try {
                programs = new ProgramList (yield Bus.get (BusType.SESSION));
            } catch (Error error) {
                warning ("%s", error.message); /* devices and profiles are shown nevertheless */
                return;
            }
            programs.programs.items_changed.connect (programs_changed);
            programs_changed (0, 0, programs.programs.get_n_items ());
        }

        private void programs_changed (uint position, uint removed, uint added) {
            for (uint i = position; i < position + added; i++) {
                var program = (Program) programs.programs.get_item (i);
                var item = new Item (program.bus_name, 1, new ProgramPage (program),
                                     "org.gtorch.Monitor-program-symbolic", program.name,
                                     program.state_text ());

                item.program = program;
                item.watch ();
                add_item (item);
            }
        }

        /* The page of a program that has ended stays, with what was read last. */
        private void state_changed (Item item) {
            uint n;

            item.show_state ();
            if (pages.visible_child == item.page)
                title_widget.subtitle = switcher.subtitle = item.program.state_text ();
            var first = find_ended (pages.visible_child, out n);
            if (n > MAX_ENDED && first != null)
                remove_item (first);
            update_states ();
        }

        /* --- profiles --- */

        public void open_profile (File file) {
            var waiting = new Adw.StatusPage () {
                icon_name = "content-loading-symbolic",
                title = _("Reading the Profile"),
                description = _("It is being read and summed up."),
            };
            var view = new ProfileView (waiting);
            var name = file.get_basename () ?? file.get_uri ();
            var item = new Item ("profile:%u".printf (++n_profiles), 2, view,
                                 "org.gtorch.Monitor-profile-symbolic", name, null);

            add_item (item);
            show_item (item);
            load_profile.begin (file, view);
        }

        private async void load_profile (File file, ProfileView view) {
            try {
                yield view.load (yield file.read_async (), false);
            } catch (Error error) {
                view.show_message (_("The File Cannot Be Read"), error.message);
            }
        }

        private delegate void Chosen (File file);

        private void choose (Gtk.FileChooserNative chooser, owned Chosen chosen) {
            var filter = new Gtk.FileFilter () { name = _("Traces (JSON)") };

            filter.add_suffix ("json");
            filter.add_suffix ("json.gz");
            chooser.add_filter (filter);
            chooser.modal = true;
            chooser.response.connect ((response) => {
                if (response == Gtk.ResponseType.ACCEPT)
                    chosen (chooser.get_file ());
                chooser.destroy ();
            });
            chooser.show ();
            chooser.ref (); /* until destroy () */
        }

        private void choose_profile () {
            choose (new Gtk.FileChooserNative (_("Open a Profile"), this, OPEN, _("_Open"), null),
                    open_profile);
        }

        /* The trace as the program has given it. */
        private void choose_saved () {
            var page = pages.visible_child as ProgramPage;

            if (page == null || page.profile_text == null)
                return;
            var text = page.profile_text; /* another one may be recorded meanwhile */
            var chooser = new Gtk.FileChooserNative (_("Save the Profile"), this, SAVE, _("_Save"), null);
            chooser.set_current_name ("%s.json".printf (page.program.name.replace ("/", "_")));
            choose (chooser, (file) => save_profile.begin (text, file));
        }

        private async void save_profile (Bytes text, File file) {
            try {
                yield save_trace (text, file, null);
            } catch (Error error) {
                var dialog = new Adw.MessageDialog (this, _("The Profile Could Not Be Saved"), error.message);

                dialog.add_response ("close", _("_Close"));
                dialog.present ();
            }
        }

        private void add_actions () {
            var open = new SimpleAction ("open", null);
            /* Their states tell what is shown. */
            var show = new SimpleAction.stateful ("show", VariantType.STRING, "");
            var show_view = new SimpleAction.stateful ("show-view", VariantType.STRING, "");
            var show_as = new SimpleAction.stateful ("show-profile-as", VariantType.STRING, "");
            var stage = new SimpleAction.stateful ("stage", null, "");
            var record = new SimpleAction ("record-profile", null);
            var save = new SimpleAction ("save-profile", null);
            var remove = new SimpleAction ("remove", VariantType.STRING);
            var remove_all = new SimpleAction ("remove-ended", null);

            record.activate.connect (() => {
                var page = pages.visible_child as ProgramPage;

                if (page != null)
                    page.record_profile ();
            });
            save.activate.connect (choose_saved);
            remove.activate.connect ((id) => {
                var item = find (id.get_string ());

                if (item != null && item.can_be_removed)
                    remove_item (item);
            });
            remove_all.activate.connect (remove_ended);
            add_action (record);
            add_action (save);
            add_action (remove);
            add_action (remove_all);
            add_action (stage);
            open.activate.connect (() => choose_profile ());
            show.activate.connect ((id) => show_item (find (id.get_string ())));
            show_view.activate.connect ((name) => {
                var page = pages.visible_child as ProgramPage;

                if (page != null && page.views.get_child_by_name (name.get_string ()) != null)
                    page.views.visible_child_name = name.get_string ();
                update_states ();
            });
            show_as.activate.connect ((mode) => {
                var view = find_profile ();

                if (view != null)
                    view.mode = mode.get_string ();
                update_states ();
            });
            add_action (show_as);
            add_action (open);
            add_action (show);
            add_action (show_view);
        }
    }
}
