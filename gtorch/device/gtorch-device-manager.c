/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Enumeration of devices: by number, by name, on the command line. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "device/gtorch-device-manager.h"

#include "device/gtorch-device-private.h"
#include "base/gtorch-text-private.h"

/**
 * GTorchDeviceManager:
 *
 * The devices of this machine, as a list: the CPU first, then the GPUs.
 *
 * Reading the list creates no context on any GPU, and counting does not even initialise CUDA, so that
 * children forked afterwards can still use it. If CUDA, once it is initialised, reports another number of
 * GPUs than was counted, the list emits [signal@Gio.ListModel::items-changed].
 *
 * Since: 0.1
 */

struct _GTorchDeviceManager
{
  GObject parent_instance;
  GMainContext *context;
  gint n_items; /* as last reported by the list; atomic; UNASKED before that */
};

#define UNASKED (-1) /* counting GPUs loads the driver */

enum
{
  MEMORY_PRESSURE,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

static void gtorch_device_manager_list_model_init (GListModelInterface *iface);

G_DEFINE_TYPE_WITH_CODE (GTorchDeviceManager, gtorch_device_manager, G_TYPE_OBJECT,
                         G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL,
                                                gtorch_device_manager_list_model_init))

static GType
get_item_type (GListModel *list)
{
  return GTORCH_TYPE_DEVICE;
}

static GTorchDeviceManager *manager; /* atomically */

static guint count_items (void);

static guint
get_n_items (GListModel *list)
{
  GTorchDeviceManager *self = GTORCH_DEVICE_MANAGER (list);

  if (g_atomic_int_get (&self->n_items) == UNASKED)
    g_atomic_int_compare_and_exchange (&self->n_items, UNASKED, (gint) count_items ());
  return (guint) g_atomic_int_get (&self->n_items);
}

static guint
count_items (void)
{
  guint i, n = 0;

  for (i = 0; i < GTORCH_N_DEVICE_TYPES; i++)
    if (gtorch_backends[i] != NULL)
      n += gtorch_backends[i]->count (NULL);
  return n;
}

static gboolean
change_items (gpointer data)
{
  GTorchDeviceManager *self = data;
  guint former = (guint) g_atomic_int_get (&self->n_items), n = count_items ();

  g_atomic_int_set (&self->n_items, (gint) n);
  if (n != former)
    g_list_model_items_changed (G_LIST_MODEL (self), MIN (n, former), former - MIN (n, former),
                                n - MIN (n, former));
  return G_SOURCE_REMOVE;
}

void
gtorch_device_manager_recount (void)
{
  GTorchDeviceManager *self = g_atomic_pointer_get (&manager);
  g_autoptr (GSource) source = NULL;

  if (self == NULL || g_atomic_int_get (&self->n_items) == UNASKED
      || count_items () == (guint) g_atomic_int_get (&self->n_items))
    return;
  source = g_idle_source_new ();
  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, change_items, self, NULL); /* the manager is never freed */
  g_source_attach (source, self->context);
}

static gpointer
get_item (GListModel *list, guint position)
{
  guint i;

  if (position >= get_n_items (list))
    return NULL;
  for (i = 0; i < GTORCH_N_DEVICE_TYPES; i++)
    {
      guint n = gtorch_backends[i] != NULL ? gtorch_backends[i]->count (NULL) : 0;

      if (position < n)
        {
          GTorchDevice *device = gtorch_backends[i]->get (position, NULL);

          return device != NULL ? g_object_ref (device) : NULL;
        }
      position -= n;
    }
  return NULL;
}

static void
gtorch_device_manager_list_model_init (GListModelInterface *iface)
{
  iface->get_item_type = get_item_type;
  iface->get_n_items = get_n_items;
  iface->get_item = get_item;
}

static void
gtorch_device_manager_class_init (GTorchDeviceManagerClass *klass)
{
  /**
   * GTorchDeviceManager::memory-pressure:
   * @self: the manager
   * @device: the device
   * @n_bytes: how much is about to be allocated
   *
   * Much memory of a device was allocated since the last emission, or an allocation would fail.
   *
   * This is [signal@Device::memory-pressure] of any device, also of one that is first used later. The
   * bindings run the garbage collectors of their languages in response.
   *
   * Since: 0.1
   */
  signals[MEMORY_PRESSURE] =
      g_signal_new ("memory-pressure", GTORCH_TYPE_DEVICE_MANAGER, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                    NULL, G_TYPE_NONE, 2, GTORCH_TYPE_DEVICE, G_TYPE_UINT64);
}

gboolean
gtorch_device_manager_memory_pressure (GTorchDevice *device, guint64 n_bytes)
{
  GTorchDeviceManager *self = g_atomic_pointer_get (&manager);

  if (self == NULL || !g_signal_has_handler_pending (self, signals[MEMORY_PRESSURE], 0, FALSE))
    return FALSE;
  g_signal_emit (self, signals[MEMORY_PRESSURE], 0, device, n_bytes);
  return TRUE;
}

static void
gtorch_device_manager_init (GTorchDeviceManager *self)
{
  self->context = g_main_context_ref_thread_default ();
  self->n_items = UNASKED;
}

/**
 * gtorch_device_manager_get_default:
 *
 * Gets the list of devices.
 *
 * Returns: (transfer none): the manager
 *
 * Since: 0.1
 */
GTorchDeviceManager *
gtorch_device_manager_get_default (void)
{
  if (g_once_init_enter (&manager))
    g_once_init_leave (&manager, g_object_new (GTORCH_TYPE_DEVICE_MANAGER, NULL));
  return manager;
}

const GTorchBackend *
gtorch_backend_find_accelerator (void)
{
  guint i;

  for (i = 1; i < GTORCH_N_DEVICE_TYPES; i++)
    if (gtorch_backends[i] != NULL && gtorch_backends[i]->count (NULL) > 0)
      return gtorch_backends[i];
  return gtorch_backends[1];
}

/**
 * gtorch_device_manager_is_available:
 * @self: the manager
 *
 * Tells whether there is a GPU that can be used.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_device_manager_is_available (GTorchDeviceManager *self)
{
  return gtorch_device_manager_get_device_count (self) > 0;
}

/**
 * gtorch_device_manager_dup_reason:
 * @self: the manager
 *
 * Tells why no GPU can be used, as a message for users: there is none, the driver is missing or too old, or
 * this build has no kernels for it.
 *
 * ```c
 * g_autofree gchar *reason = gtorch_device_manager_dup_reason (manager);
 *
 * if (reason != NULL)
 *   g_print ("computing on the CPU: %s\n", reason);
 * ```
 *
 * Returns: (transfer full) (nullable): the reason, or %NULL if [func@Device.get_default] returns a GPU
 *
 * Since: 0.1
 */
gchar *
gtorch_device_manager_dup_reason (GTorchDeviceManager *self)
{
  g_autoptr (GError) error = NULL;
  const GTorchBackend *backend;
  const gchar *reason = NULL;
  GTorchDevice *device;

  g_return_val_if_fail (GTORCH_IS_DEVICE_MANAGER (self), NULL);
  if (gtorch_device_get_default () != gtorch_device_cpu ())
    return NULL;
  backend = gtorch_backend_find_accelerator ();
  if (backend->count (&reason) == 0)
    return g_strdup (reason);
  device = backend->get (0, &error);
  if (device != NULL && backend->is_usable != NULL)
    backend->is_usable (device, &error);
  return error != NULL ? g_strdup (error->message) : NULL;
}

/**
 * gtorch_device_manager_get_device_count:
 * @self: the manager
 *
 * Gets the number of GPUs. The CPU is not counted.
 *
 * Returns: the number of CUDA devices
 *
 * Since: 0.1
 */
guint
gtorch_device_manager_get_device_count (GTorchDeviceManager *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MANAGER (self), 0);
  return gtorch_backend_find_accelerator ()->count (NULL);
}

GTorchDevice *
gtorch_device_find_first (GTorchDeviceType type, GError **error)
{
  if (gtorch_backends[type] != NULL)
    return gtorch_backend_find (gtorch_backends[type], 0, gtorch_backends[type]->prefix, error);
  g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE,
                       _ ("device: the program has added no backend of its own"));
  return NULL;
}

/**
 * gtorch_device_new_from_string:
 * @string: `cpu`, `cuda`, `cuda:1`, or `1` as a short form of `cuda:1`
 * @error: return location for an error
 *
 * Finds a device by name. `cuda` without a number gives a device that stands for the current GPU of the
 * thread ([func@Device.get_current]), each time that it is used.
 *
 * ```c
 * g_autoptr (GTorchDevice) device = gtorch_device_new_from_string ("cuda:1", &error);
 * ```
 *
 * Returns: (transfer full): the device, or %NULL with %GTORCH_ERROR_DEVICE if the string is no valid name
 *   or there is no such device; the message says why
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_device_new_from_string (const gchar *string, GError **error)
{
  GTorchDevice *device = NULL;
  const gchar *number = NULL;
  const GTorchBackend *backend = NULL;
  guint64 index = 0;
  guint i;

  g_return_val_if_fail (string != NULL, NULL);
  for (i = 0; i < GTORCH_N_DEVICE_TYPES; i++)
    {
      gsize length = gtorch_backends[i] != NULL ? strlen (gtorch_backends[i]->prefix) : 0;

      if (length == 0 || strncmp (string, gtorch_backends[i]->prefix, length) != 0)
        continue;
      if (string[length] == '\0' || string[length] == ':')
        {
          backend = gtorch_backends[i];
          number = string[length] == ':' ? string + length + 1 : NULL;
        }
    }
  if (backend == NULL && g_ascii_isdigit (string[0]))
    {
      backend = gtorch_backend_find_accelerator ();
      number = string;
    }
  if (backend == NULL
      || (number != NULL && !g_ascii_string_to_unsigned (number, 10, 0, G_MAXINT16, &index, NULL)))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE,
                   _ ("device: “%s” does not name a device: expected cpu, cuda or cuda:N"),
                   gtorch_name_str (string));
      return NULL;
    }
  if (backend->type != GTORCH_DEVICE_TYPE_CPU && number == NULL)
    device = gtorch_device_get_follower (backend->type, error);
  else
    device = gtorch_backend_find (backend, index, string, error);
  return device != NULL ? g_object_ref (device) : NULL;
}

/**
 * gtorch_device_get_default:
 *
 * Finds the device that a program should use if its user has not chosen one: the first GPU on which
 * operations work, else the CPU.
 *
 * A GPU for which this build has no kernels is skipped, and so is one whose compute mode prohibits
 * computing. The first call initialises CUDA but creates no context. This is not the device of new tensors
 * ([func@get_default_device]) unless it is set:
 *
 * ```c
 * gtorch_set_default_device (gtorch_device_get_default ());
 * ```
 *
 * Returns: (transfer none): the device
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_device_get_default (void)
{
  const GTorchBackend *backend = gtorch_backend_find_accelerator ();
  guint i, n = backend->count (NULL);

  for (i = 0; i < n; i++)
    {
      GTorchDevice *device = backend->get (i, NULL);

      if (device != NULL && (backend->is_usable == NULL || backend->is_usable (device, NULL)))
        return device;
    }
  return gtorch_device_cpu ();
}
