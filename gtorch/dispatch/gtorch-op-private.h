/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <math.h>

#include <gtorch/base/gtorch-none-private.h>
#include <gtorch/base/gtorch-range-private.h>
#include <gtorch/device/gtorch-thread-private.h>
#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* One operation = one row of gtorch/ops/<family>.toml = one constant GTorchOpClass.
 * docs/writing-an-op.md is the reference of the rows. The path of every call:
 *
 *   gtorch_tensor_add ()            generated; unwraps and wraps
 *     gtorch_op_add ()              generated; the same over GTorchImpl, for use inside the library
 *       gtorch_op_run ()            checks operands
 *         class->shape ()           promotes, computes shapes, allocates outputs (host only)
 *         gtorch_launch ()          runs the device's form of the operation, or enqueues or records it
 *         gtorch_recorder->record () only if a gradient is wanted
 */

#define GTORCH_OP_MAX_OUTPUTS 4

typedef struct _GTorchGradContext GTorchGradContext;

typedef enum
{
  GTORCH_ARG_TENSOR,
  GTORCH_ARG_OPTIONAL_TENSOR,
  GTORCH_ARG_TENSORS, /* a list; these inputs follow the fixed ones */
  GTORCH_ARG_INT,
  GTORCH_ARG_DOUBLE,
  GTORCH_ARG_NUMBER, /* has the dtype of the elements, which the caller does not know */
  GTORCH_ARG_BOOL,
  GTORCH_ARG_INTS,
  GTORCH_ARG_DTYPE,
  GTORCH_ARG_DEVICE,    /* may be NULL */
  GTORCH_ARG_GENERATOR, /* may be NULL */
  GTORCH_ARG_ENUM,
} GTorchArgKind;

typedef struct
{
  const gchar *name;
  GTorchArgKind kind;
  const gchar *default_value; /* as written in the row, or NULL */
} GTorchArgSpec;

/* The value of an argument that is not a tensor; the spec says which member is used. */
typedef union
{
  gint64 i;  /* INT, BOOL, DTYPE, ENUM */
  gdouble d; /* DOUBLE, and the first part of NUMBER */
  struct
  {
    gdouble d;
    gint64 i; /* the exact value of an integer; of a double, truncated and clamped to int64 */
    gboolean is_int;
  } number;
  gpointer p; /* DEVICE, GENERATOR: borrowed in a call, owned in a node */
  struct
  {
    const gint64 *data;
    gsize n;
  } list;
} GTorchAttr;

static inline GTorchAttr
gtorch_attr_number (gdouble value)
{
  gint64 whole = value >= 0x1p63 ? G_MAXINT64 : G_MININT64;

  if (value >= -0x1p63 && value < 0x1p63)
    whole = (gint64) value;
  return (GTorchAttr){ .number = { value, whole, FALSE } };
}

static inline GTorchAttr
gtorch_attr_int (gint64 value)
{
  return (GTorchAttr){ .number = { (gdouble) value, value, TRUE } };
}

/* Converts a bound; the constant for no number means that there is none. */
static inline GTorchAttr
gtorch_attr_real_bound (gdouble value, gdouble none)
{
  return gtorch_attr_number (gtorch_is_none_double (value) ? none : value);
}

/* Converts a bound given as int64; the extremes of the range mean that there is no bound. */
static inline GTorchAttr
gtorch_attr_bound (gint64 value)
{
  GTorchAttr attr = gtorch_attr_int (value);

  if (value == G_MAXINT64)
    attr.number.d = (gdouble) INFINITY;
  else if (value == G_MININT64)
    attr.number.d = -(gdouble) INFINITY;
  return attr;
}

typedef enum
{
  GTORCH_PROMOTE_NONE,   /* decided by the op's shape function */
  GTORCH_PROMOTE_COMMON, /* the common dtype for computation and result */
  GTORCH_PROMOTE_FLOAT,  /* as COMMON, but integers and bool become the default float dtype */
  GTORCH_PROMOTE_BOOL,   /* the common dtype for computation, bool for the result */
  GTORCH_PROMOTE_SUM,    /* as COMMON, but integers and bool become int64 */
  GTORCH_PROMOTE_REAL,   /* as COMMON; the result of complex inputs is real (abs) */
  GTORCH_PROMOTE_INT,    /* as COMMON, but bool becomes int64 */
  GTORCH_PROMOTE_BOUNDS, /* as INT; as FLOAT if an attribute has a fraction (clamp) */
} GTorchPromote;

typedef enum
{
  GTORCH_OP_FLAG_VIEW = 1 << 0,   /* the outputs share the input's storage; nothing is launched */
  GTORCH_OP_FLAG_RANDOM = 1 << 1, /* draws from a generator */
  GTORCH_OP_FLAG_SYNC = 1 << 2,   /* reads values on the host: not allowed in a capture */
  GTORCH_OP_FLAG_DEVICES =
      1 << 4, /* inputs may be on different devices; runs on that of the first */
  GTORCH_OP_FLAG_INPLACE_OK = 1 << 3, /* has an in-place form */
  GTORCH_OP_FLAG_NUMBERS = 1 << 5,    /* 0-d inputs may be on the CPU, but not all of them */
  GTORCH_OP_FLAG_FACTORS = 1 << 6,    /* the compute dtype must be able to represent its doubles */
  GTORCH_OP_FLAG_DIVIDES = 1 << 7,    /* integer division by 0 is an error where the host sees it */
  GTORCH_OP_FLAG_POWERS = 1 << 8,     /* integers must not have a negative number as exponent */
  GTORCH_OP_FLAG_PROBABILITY = 1 << 9, /* the first two inputs must be in [0, 1], like DIVIDES */
  GTORCH_OP_FLAG_UNREAD = 1 << 10,     /* does not use the values of its inputs */
  GTORCH_OP_FLAG_UNSET = 1 << 11,      /* only allocates, and writes nothing */
  GTORCH_OP_FLAG_OVERWRITES = 1 << 12, /* in place, every element is written and none is read */
  GTORCH_OP_FLAG_CHOOSES = 1 << 13, /* returns one of its operands: numbers must be representable */
  GTORCH_OP_FLAG_ELEMENTWISE = 1 << 14, /* an element depends on one element of each input */
  GTORCH_OP_FLAG_LINEAR = 1 << 15,      /* is its own derivative, in all floating-point inputs */
} GTorchOpFlags;

/* The effect of a region of mixed precision (gtorch-autocast-private.h) on floating-point inputs other than
 * float64. */
typedef enum
{
  GTORCH_AUTOCAST_NONE,
  GTORCH_AUTOCAST_LOWER,   /* casts them to the region's dtype */
  GTORCH_AUTOCAST_FLOAT32, /* casts them to float32 */
  GTORCH_AUTOCAST_DTYPE, /* result is float32, if input 0 is floating-point and no dtype is given */
  GTORCH_AUTOCAST_WIDEST, /* casts them to the widest dtype among them */
  GTORCH_AUTOCAST_PLAIN,  /* for composites: leaves its inputs and those of its parts unchanged */
  GTORCH_AUTOCAST_REFUSED,
} GTorchAutocastPolicy;

#define GTORCH_AUTOCAST_POLICY(type, policy) \
  (GTORCH_AUTOCAST_##policy << (8 * GTORCH_DEVICE_TYPE_##type))

/* An inner loop over n elements: pointers and byte strides, outputs first, then inputs. All operands have
 * the compute dtype (outputs of PROMOTE_BOOL ops are bool). */
typedef void (*GTorchLoop) (char *const *data, const gint64 *strides, gint64 n,
                            const GTorchAttr *attrs);

struct _GTorchOpClass
{
  const gchar *name;
  guint16 id;
  guint16 flags;
  guint8 n_args;
  guint8 n_inputs; /* number of fixed tensor arguments */
  guint8 n_attrs;
  guint8 n_outputs;
  guint8 promote; /* GTorchPromote */
  gint16 loop;    /* row of the loop tables; -1: none */
  guint32
      autocast;   /* GTorchAutocastPolicy, a byte per device type of the rows; see autocast_like */
  guint32 dtypes; /* supported compute dtypes, after promotion */
  guint32 plain;  /* dtypes allowed in a plain call, see is_plain below */
  guint32 saved_inputs;  /* bit i: the gradient needs the value of input i (bit 31: the list) */
  guint32 saved_outputs; /* bit i: the gradient needs the value of output i */
  const GTorchArgSpec *args;
  gboolean (*shape) (GTorchOpCall *call, GError **error);
  gboolean (*grad) (GTorchGradContext *context, GError **error); /* NULL: not differentiable */
  gboolean (*writes) (const GTorchOpCall *call,
                      guint i); /* whether input i is written; NULL: none */
};

struct _GTorchOpCall
{
  const GTorchOpClass *op;
  const GTorchOpClass *part_of; /* composite that the program called, NULL if it called op */
  GTorchImpl *const *inputs;    /* borrowed; NULL for optional inputs that were not given */
  guint n_inputs;
  const GTorchAttr *attrs;
  GTorchImpl *outputs[GTORCH_OP_MAX_OUTPUTS]; /* set by shape (); in place: preset to input 0 */
  guint n_outputs;
  gboolean in_place;
  gboolean of_numbers; /* all inputs are scalar arguments, so the result is one */
  gboolean is_view;    /* set by shape (): the outputs alias an input, nothing is launched */
  gboolean is_plain; /* operands are contiguous, with one dtype, shape and device, and own memory */
  GTorchDevice *device;
  guint compute; /* compute dtype, set by shape () */
  guint64 seed;  /* RANDOM: Philox key and first counter, reserved after shape () */
  guint64 counter;
};

/* The shape, dtype and device of an input or output whose value may not have been saved. */
typedef struct
{
  GTorchDevice *device;
  guint8 dtype;
  guint8 n_dims;
  gint64 numel;
  const gint64 *shape;
} GTorchMeta;

/* The context of a gradient function. `grads` and the saved tensors are borrowed; `result` takes ownership of
 * what is put into it. A result may still have the broadcast shape and the promoted dtype: the caller reduces
 * and casts it. */
struct _GTorchGradContext
{
  const GTorchOpClass *op;
  guint n_inputs;
  GTorchImpl *const *grads;   /* one per output; NULL: no gradient arrived (zero) */
  GTorchImpl *const *inputs;  /* NULL where not saved */
  GTorchImpl *const *outputs; /* NULL where not saved */
  const GTorchMeta *input_metas;
  const GTorchMeta *output_metas;
  const GTorchAttr *attrs;
  const gboolean *needs; /* for each input: whether its gradient is wanted */
  GTorchImpl **result;
};

/* Returns a new reference to the gradient of output i, zeros if none arrived. */
GTorchImpl *gtorch_grad_or_zeros (GTorchGradContext *context, guint i, GError **error);

/* Set the error for an operation, or an argument, that is not differentiable. */
gboolean gtorch_grad_undefined (GTorchGradContext *context, GError **error);
gboolean gtorch_grad_undefined_for (GTorchGradContext *context, const gchar *arg, GError **error);

/* All operations by id (GTORCH_OP_ADD, …; generated). */
extern const GTorchOpClass gtorch_ops[];
extern const guint gtorch_n_ops;
const GTorchOpClass *gtorch_op_find (const gchar *name);
/* Returns the argument that tensor input i, or attribute i, belongs to. */
const GTorchArgSpec *gtorch_op_find_arg (const GTorchOpClass *op, gboolean tensor, guint i);

/* Runs one call. `outputs` receives n_outputs new references; in-place calls write nothing to it. */
gboolean gtorch_op_run (const GTorchOpClass *op, GTorchImpl *const *inputs, guint n_inputs,
                        const GTorchAttr *attrs, GTorchImpl **outputs, GError **error);
/* Runs a call of an operation of one output, no view, whose result is written into a contiguous tensor of its
 * shape, dtype and device that is not in use elsewhere. No gradient is recorded. */
gboolean gtorch_op_run_into (const GTorchOpClass *op, GTorchImpl *const *inputs, guint n_inputs,
                             const GTorchAttr *attrs, GTorchImpl *output, GError **error);
gboolean gtorch_op_run_in_place (const GTorchOpClass *op, GTorchImpl *const *inputs, guint n_inputs,
                                 const GTorchAttr *attrs, GError **error);

/* --- for shape functions --- */
/* Sets output i: allocates it on call->device or, in place, checks that it fits the preset one. */
gboolean gtorch_call_set_output (GTorchOpCall *call, guint i, guint dtype, const gint64 *shape,
                                 guint n_dims, GError **error);

#define GTORCH_CHANNELS_LAST_MAX 5 /* dimensions: [batch, channels, depth, height, width] */

/* Whether the channels are the innermost dimension of dense images [batch, channels, …], and the others are
 * in order; FALSE if the images are contiguous, too. */
gboolean gtorch_impl_is_channels_last (const GTorchImpl *impl);
/* Does what gtorch_call_set_output () does, with the channels last in memory if `channels_last`. */
gboolean gtorch_call_set_images (GTorchOpCall *call, guint i, guint dtype, const gint64 *shape,
                                 guint n_dims, gboolean channels_last, GError **error);

/* Returns the common dtype of inputs [first, first + n) by PyTorch's rules (tensors, 0-d tensors,
 * numbers). */
guint gtorch_call_common_dtype (GTorchOpCall *call, guint first, guint n);
/* Applies the class's promotion rule to inputs [first, first + n): sets call->compute and *dtype, the dtype
 * of the result; fails if the class does not support the dtype. */
gboolean gtorch_call_promote (GTorchOpCall *call, guint first, guint n, guint *dtype,
                              GError **error);
/* Checks that an argument is a valid dtype. */
gboolean gtorch_call_is_dtype (GTorchOpCall *call, guint dtype, GError **error);
/* Returns whether the first n attributes are all numbers that were given as integers. */
static inline gboolean
gtorch_call_has_ints (const GTorchOpCall *call, guint n)
{
  while (n > 0 && call->attrs[n - 1].number.is_int)
    n--;
  return n == 0;
}

/* Returns whether all numbers among the attributes are in the range of every floating-point dtype. */
gboolean gtorch_call_has_all_small_numbers (const GTorchOpCall *call);
static inline gboolean
gtorch_call_has_small_numbers (const GTorchOpCall *call)
{
  return G_LIKELY (call->op->n_attrs == 1 && fabs (call->attrs[0].d) <= 65504)
         || gtorch_call_has_all_small_numbers (call);
}

/* Checks that the dtype can represent attribute i, a number. */
gboolean gtorch_call_check_value (GTorchOpCall *call, guint i, guint dtype, GError **error);
/* Checks that the dtype can represent attribute i, a double; for integer dtypes the double must not be the
 * result of rounding. */
gboolean gtorch_call_check_double (GTorchOpCall *call, guint i, guint dtype, GError **error);
/* Checks that the dtype can represent input i, if that is a number. */
gboolean gtorch_call_check_scalar (GTorchOpCall *call, guint i, guint dtype, GError **error);
gboolean gtorch_call_check_dtype (GTorchOpCall *call, guint dtype, GError **error);
/* Checks that impl, unless it is NULL, is one element of the dtype; `what` is for the message. */
gboolean gtorch_call_check_number (GTorchOpCall *call, const GTorchImpl *impl, guint dtype,
                                   const gchar *what, GError **error);
/* Sets an error whose message begins with the op's name: "add: inputs[1]: …". */
void gtorch_call_error (GTorchOpCall *call, GError **error, GTorchError code, const gchar *format,
                        ...) G_GNUC_PRINTF (4, 5);
/* Returns whether the call writes every byte of input i without reading it. */
gboolean gtorch_call_overwrites (const GTorchOpCall *call, guint i);
/* Prefixes an OUT_OF_MEMORY error with the op's name, which code that allocates inside an operation does
 * not know. */
void gtorch_call_name_error (const GTorchOpCall *call, GError **error);
/* Sets an INVALID error which says that a numeric argument of the operation is out of range. */
void gtorch_op_refuse_number (guint op, const gchar *name, gdouble value, gdouble low, gdouble high,
                              gboolean is_open, GError **error);
/* Returns the operation that the program called. */
static inline const GTorchOpClass *
gtorch_call_named_op (const GTorchOpCall *call)
{
  return call->part_of != NULL ? call->part_of : call->op;
}
/* Returns whether the call writes to input i, in addition to its outputs. */
static inline gboolean
gtorch_call_writes (const GTorchOpCall *call, guint i)
{
  return G_UNLIKELY (call->op->writes != NULL) && call->inputs[i] != NULL
         && call->op->writes (call, i);
}
/* Returns whether the values of the inputs matter, not only their shape and dtype. */
static inline gboolean
gtorch_call_takes_values (const GTorchOpCall *call)
{
  return (call->op->flags & GTORCH_OP_FLAG_UNREAD) == 0 || call->in_place;
}
/* For a composite with a list argument: checks that each item is a tensor. */
gboolean gtorch_composite_check_list (guint id, GTorchImpl *const *inputs, gsize n, GError **error);
/* Called before and after the parts of a composite that the program calls: errors of the parts, also those
 * found later, get the name of the composite. Observers are told of the inputs, which stand in the order of
 * the row, NULL for one that is not given. End takes the result of begin. */
const GTorchOpClass *gtorch_composite_begin (guint id, GTorchImpl *const *inputs, gsize n_inputs);
/* The same for a composite that has a list, too. */
const GTorchOpClass *gtorch_composite_begin_list (guint id, GTorchImpl *const *inputs,
                                                  gsize n_inputs, GTorchImpl *const *items,
                                                  gsize n_items);
/* Inputs and their number: gtorch_composite_begin (id, GTORCH_IMPLS (input, weight, bias)). */
#define GTORCH_IMPLS(...)                 \
  ((GTorchImpl *const[]){ __VA_ARGS__ }), \
      (sizeof ((GTorchImpl *const[]){ __VA_ARGS__ }) / sizeof (GTorchImpl *))
void gtorch_composite_end (const GTorchOpClass *former, gboolean ok, GError **error);
/* The standard shape functions. */
gboolean gtorch_shape_pointwise (GTorchOpCall *call, GError **error);
gboolean gtorch_shape_reduce (GTorchOpCall *call, GError **error);
gboolean gtorch_shape_same (GTorchOpCall *call, GError **error); /* shape of input 0 */

/* --- the launcher --- */
gboolean gtorch_launch (GTorchOpCall *call, GError **error);
/* Sets call->seed and call->counter from the call's generator or that of the device. Does nothing in a
 * capture: each replay reserves new numbers. */
void gtorch_random_reserve (GTorchOpCall *call);
/* Fails if the generator of a random call was created for another device. */
gboolean gtorch_random_check (GTorchOpCall *call, GError **error);
/* Waits for the inputs; called before the shape function of an operation that reads values. */
gboolean gtorch_launch_sync_inputs (GTorchOpCall *call, GError **error);
/* Returns a new output; while the current stream captures, in memory of the graph. */
GTorchImpl *gtorch_launch_new_output (GTorchOpCall *call, guint dtype, const gint64 *shape,
                                      guint n_dims, GError **error);

/* --- whether a call is recorded --- */
/* 1 while a level of forward-mode derivatives is open in the process; accessed atomically. */
extern gint gtorch_forward_levels;

/* Returns whether tensors may have tangents which operations of this thread have to follow. */
static inline gboolean
gtorch_forward_is_on (void)
{
  return G_UNLIKELY (__atomic_load_n (&gtorch_forward_levels, __ATOMIC_ACQUIRE) != 0)
         && !gtorch_thread.no_forward;
}

/* Returns whether the operations of a gradient function must have derivatives themselves. */
gboolean gtorch_autograd_is_differentiated (void);
gboolean gtorch_autograd_look_for_wanted (GTorchImpl *const *inputs, guint n_inputs);
/* Returns whether any input requires a gradient while recording is on, or has a tangent. */
static inline gboolean
gtorch_autograd_wanted (GTorchImpl *const *inputs, guint n_inputs)
{
  guint i;

  for (i = 0; i < n_inputs; i++)
    if (inputs[i] != NULL && inputs[i]->autograd != NULL)
      return gtorch_autograd_look_for_wanted (inputs + i, n_inputs - i);
  return FALSE;
}

G_END_DECLS
