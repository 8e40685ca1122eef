/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

[CCode (cheader_filename = "config.h,monitor-config.h", cprefix = "", lower_case_cprefix = "")]
namespace GTorchMonitor {
    [CCode (cname = "MONITOR_APP_ID")]
    public const string APP_ID;
    [CCode (cname = "MONITOR_LOCALE_DIR")]
    public const string LOCALE_DIR;
    [CCode (cname = "GETTEXT_PACKAGE")]
    public const string GETTEXT_PACKAGE;
    [CCode (cname = "GTORCH_VERSION")]
    public const string VERSION;
}
