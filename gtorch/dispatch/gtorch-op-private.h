/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <math.h>

#include <gtorch/base/gtorch-range-private.h>
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
 *         gtorch_autograd_record () only if a gradient is wanted
 */

#define GTORCH_OP_MAX_OUTPUTS 4

typedef struct _GTorchGradContext GTorchGradContext;

typedef enum
{
  GTORCH_ARG_TENSOR,
  GTORCH_ARG_OPTIONAL_TENSOR,
  GTORCH_ARG_TENSORS, /* a list; the op's inputs are the fixed ones, then these */
  GTORCH_ARG_INT,
  GTORCH_ARG_DOUBLE,
  GTORCH_ARG_NUMBER, /* of the dtype of the elements, which is not known where it is given */
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

/* The value of an argument that is not a tensor; which member counts is said by the spec. */
typedef union
{
  gint64 i;  /* INT, BOOL, DTYPE, ENUM */
  gdouble d; /* DOUBLE, and the first part of NUMBER */
  struct
  {
    gdouble d;
    gint64 i; /* d cut off to the range of int64, or what d is the nearest double of */
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

/* The ends of the range of int64 are no bounds. */
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
  GTORCH_PROMOTE_NONE,   /* the op's shape function decides */
  GTORCH_PROMOTE_COMMON, /* computed in, and giving, the common dtype */
  GTORCH_PROMOTE_FLOAT,  /* the same, integers and bool becoming the default float dtype */
  GTORCH_PROMOTE_BOOL,   /* computed in the common dtype, giving bool */
  GTORCH_PROMOTE_SUM,    /* integers and bool become int64 */
  GTORCH_PROMOTE_REAL,   /* as COMMON; complex gives the real dtype (abs) */
  GTORCH_PROMOTE_BOUNDS, /* as COMMON; as FLOAT if an attribute is no whole number (clamp) */
} GTorchPromote;

typedef enum
{
  GTORCH_OP_FLAG_VIEW = 1 << 0,   /* the outputs share the input's storage; nothing is launched */
  GTORCH_OP_FLAG_RANDOM = 1 << 1, /* draws from a generator */
  GTORCH_OP_FLAG_SYNC = 1 << 2,   /* reads values on the host: not possible in a capture */
  GTORCH_OP_FLAG_DEVICES =
      1 << 4, /* the inputs need not be on one device; it runs on the first's */
  GTORCH_OP_FLAG_INPLACE_OK = 1 << 3, /* has an in-place form */
  GTORCH_OP_FLAG_NUMBERS =
      1 << 5, /* inputs without dimensions may be on the CPU, but not all of them */
  GTORCH_OP_FLAG_FACTORS = 1 << 6, /* its doubles are such as what is computed in has */
  GTORCH_OP_FLAG_DIVIDES =
      1 << 7, /* integers are not divided by 0: an error where the host sees it */
  GTORCH_OP_FLAG_POWERS = 1 << 8,      /* integers have no negative number as an exponent */
  GTORCH_OP_FLAG_PROBABILITY = 1 << 9, /* the first input is in [0, 1]: likewise */
  GTORCH_OP_FLAG_UNREAD = 1 << 10,     /* the values of the inputs have no part in it */
  GTORCH_OP_FLAG_UNSET = 1 << 11,      /* makes memory only, and writes nothing */
  GTORCH_OP_FLAG_OVERWRITES = 1 << 12, /* in place, every element is written and none is read */
  GTORCH_OP_FLAG_CHOOSES = 1 << 13,    /* gives one of its operands: each must be there as it is */
} GTorchOpFlags;

/* What a region of mixed precision (gtorch-autocast-private.h) does with the inputs that are floating-point
 * and not float64. */
typedef enum
{
  GTORCH_AUTOCAST_NONE,
  GTORCH_AUTOCAST_LOWER,   /* casts them to the region's dtype */
  GTORCH_AUTOCAST_FLOAT32, /* casts them to float32 */
  GTORCH_AUTOCAST_DTYPE, /* gives float32, if the first is such, unless an argument says otherwise */
  GTORCH_AUTOCAST_WIDEST, /* casts them to the widest dtype among them */
  GTORCH_AUTOCAST_PLAIN, /* of a composite: leaves them, and the inputs of its parts, as they are */
  GTORCH_AUTOCAST_REFUSED,
} GTorchAutocastPolicy;

#define GTORCH_AUTOCAST_POLICY(type, policy) \
  (GTORCH_AUTOCAST_##policy << (8 * GTORCH_DEVICE_TYPE_##type))

/* Inner loop over n elements: pointers and byte strides, outputs first, then inputs. All operands have
 * the compute dtype (outputs of PROMOTE_BOOL ops are bool). */
typedef void (*GTorchLoop) (char *const *data, const gint64 *strides, gint64 n,
                            const GTorchAttr *attrs);

struct _GTorchOpClass
{
  const gchar *name;
  guint16 id;
  guint16 flags;
  guint8 n_args;
  guint8 n_inputs; /* fixed tensor arguments */
  guint8 n_attrs;
  guint8 n_outputs;
  guint8 promote;        /* GTorchPromote */
  gint16 loop;           /* row of the loop tables, or -1 */
  guint32 autocast;      /* a byte for each type of device: GTorchAutocastPolicy */
  guint32 dtypes;        /* the dtypes it is computed in, after promotion */
  guint32 plain;         /* those that a plain call may have, see is_plain below */
  guint32 saved_inputs;  /* bit i: the gradient needs the value of input i (bit 31: the list) */
  guint32 saved_outputs; /* bit i: … of output i */
  const GTorchArgSpec *args;
  gboolean (*shape) (GTorchOpCall *call, GError **error);
  gboolean (*grad) (GTorchGradContext *context, GError **error); /* NULL: not differentiable */
  gboolean (*writes) (const GTorchOpCall *call, guint i); /* to inputs; NULL: to outputs alone */
};

struct _GTorchOpCall
{
  const GTorchOpClass *op;
  const GTorchOpClass *part_of; /* the composite that the program called, NULL if it called op */
  GTorchImpl *const *inputs;    /* borrowed; NULL for an optional one that was not given */
  guint n_inputs;
  const GTorchAttr *attrs;
  GTorchImpl *outputs[GTORCH_OP_MAX_OUTPUTS]; /* set by shape (); in place: preset to input 0 */
  guint n_outputs;
  gboolean in_place;
  gboolean of_numbers; /* all inputs are scalar arguments: so is the result */
  gboolean is_view;    /* set by shape (): the outputs show an input, nothing is launched */
  gboolean is_plain;   /* all operands have one dtype, shape and device, no gaps, own memory */
  GTorchDevice *device;
  guint compute; /* dtype in which the elements are computed, set by shape () */
  guint64 seed;  /* RANDOM: Philox key and first counter, reserved after shape () */
  guint64 counter;
};

/* What a gradient sees. `grads` and the saved tensors are borrowed; what is put into `result` is given
 * away. A result may still have the broadcast shape and promoted dtype: the caller reduces and
 * casts. */
typedef struct
{
  GTorchDevice *device;
  guint8 dtype;
  guint8 n_dims;
  gint64 numel;
  const gint64 *shape;
} GTorchMeta;

struct _GTorchGradContext
{
  const GTorchOpClass *op;
  guint n_inputs;
  GTorchImpl *const *grads;   /* one for each output; NULL: nothing arrived (a zero) */
  GTorchImpl *const *inputs;  /* NULL where not saved */
  GTorchImpl *const *outputs; /* NULL where not saved */
  const GTorchMeta *input_metas;
  const GTorchMeta *output_metas;
  const GTorchAttr *attrs;
  const gboolean *needs; /* for each input: is its gradient wanted? */
  GTorchImpl **result;
};

/* The gradient of output i, a new reference: zeros when nothing arrived. */
GTorchImpl *gtorch_grad_or_zeros (GTorchGradContext *context, guint i, GError **error);

/* The gradients that there are not: errors. One is that of an operation, the other of an argument. */
gboolean gtorch_grad_undefined (GTorchGradContext *context, GError **error);
gboolean gtorch_grad_undefined_for (GTorchGradContext *context, const gchar *arg, GError **error);

/* All operations, by id (GTORCH_OP_ADD, …; generated). */
extern const GTorchOpClass gtorch_ops[];
extern const guint gtorch_n_ops;
const GTorchOpClass *gtorch_op_find (const gchar *name);
/* Returns the argument that input i, or attribute i, belongs to. */
const GTorchArgSpec *gtorch_op_find_arg (const GTorchOpClass *op, gboolean tensor, guint i);

/* Runs one call. `outputs` receives n_outputs new references (in place: nothing is written to it). */
gboolean gtorch_op_run (const GTorchOpClass *op, GTorchImpl *const *inputs, guint n_inputs,
                        const GTorchAttr *attrs, GTorchImpl **outputs, GError **error);
gboolean gtorch_op_run_in_place (const GTorchOpClass *op, GTorchImpl *const *inputs, guint n_inputs,
                                 const GTorchAttr *attrs, GError **error);

/* --- for shape functions --- */
/* Output i: allocates it on call->device; in place, checks that it fits the preset one. */
gboolean gtorch_call_set_output (GTorchOpCall *call, guint i, guint dtype, const gint64 *shape,
                                 guint n_dims, GError **error);
/* The common dtype of inputs [first, first + n) by PyTorch's rules (tensors, 0-d tensors, numbers). */
guint gtorch_call_common_dtype (GTorchOpCall *call, guint first, guint n);
/* Applies the class's promote rule to inputs [first, first + n): sets call->compute, gives the result
 * dtype; a GError if the class does not accept the dtype. */
gboolean gtorch_call_promote (GTorchOpCall *call, guint first, guint n, guint *dtype,
                              GError **error);
/* Is what was given for one a dtype at all? */
gboolean gtorch_call_is_dtype (GTorchOpCall *call, guint dtype, GError **error);
/* Are all of the first n attributes numbers that were given as integers? */
static inline gboolean
gtorch_call_has_ints (const GTorchOpCall *call, guint n)
{
  while (n > 0 && call->attrs[n - 1].number.is_int)
    n--;
  return n == 0;
}

/* Returns whether every floating-point dtype has the numbers among the attributes. */
gboolean gtorch_call_has_all_small_numbers (const GTorchOpCall *call);
static inline gboolean
gtorch_call_has_small_numbers (const GTorchOpCall *call)
{
  return G_LIKELY (call->op->n_attrs == 1 && fabs (call->attrs[0].d) <= 65504)
         || gtorch_call_has_all_small_numbers (call);
}

/* Is attribute i, a number, one that the dtype has? */
gboolean gtorch_call_check_value (GTorchOpCall *call, guint i, guint dtype, GError **error);
/* The same of attribute i, a double, which for integers must not have been rounded to that. */
gboolean gtorch_call_check_double (GTorchOpCall *call, guint i, guint dtype, GError **error);
/* The same of input i, if that is a number, which becomes an element of dtype. */
gboolean gtorch_call_check_scalar (GTorchOpCall *call, guint i, guint dtype, GError **error);
gboolean gtorch_call_check_dtype (GTorchOpCall *call, guint dtype, GError **error);
/* Must be one element of the dtype, if it is given; `what` is for the message. */
gboolean gtorch_call_check_number (GTorchOpCall *call, const GTorchImpl *impl, guint dtype,
                                   const gchar *what, GError **error);
/* "add: inputs[1]: …": sets a GError whose message starts with the op's name. */
void gtorch_call_error (GTorchOpCall *call, GError **error, GTorchError code, const gchar *format,
                        ...) G_GNUC_PRINTF (4, 5);
/* Does it write to every byte of input i, whatever is there? */
gboolean gtorch_call_overwrites (const GTorchOpCall *call, guint i);
/* What allocates deep inside of an operation does not know its name: puts that in front of OUT_OF_MEMORY. */
void gtorch_call_name_error (const GTorchOpCall *call, GError **error);
/* Sets an INVALID error which says that a numeric argument of the operation is outside its range. */
void gtorch_op_refuse_number (guint op, const gchar *name, gdouble value, gdouble low, gdouble high,
                              gboolean is_open, GError **error);
/* The operation that the program knows of. */
static inline const GTorchOpClass *
gtorch_call_named_op (const GTorchOpCall *call)
{
  return call->part_of != NULL ? call->part_of : call->op;
}
/* Does it write to input i, beside its outputs? */
static inline gboolean
gtorch_call_writes (const GTorchOpCall *call, guint i)
{
  return G_UNLIKELY (call->op->writes != NULL) && call->inputs[i] != NULL
         && call->op->writes (call, i);
}
/* Has it to do with the values of its inputs? Not if these only say what shape and dtype the result has. */
static inline gboolean
gtorch_call_takes_values (const GTorchOpCall *call)
{
  return (call->op->flags & GTORCH_OP_FLAG_UNREAD) == 0 || call->in_place;
}
/* Around a composite that the program calls: errors of its parts get its name, those that are found later,
 * too. Begin returns what end must be given. */
/* Of a composite that is given a list: is each a tensor? */
gboolean gtorch_composite_check_list (guint id, GTorchImpl *const *inputs, gsize n, GError **error);
const GTorchOpClass *gtorch_composite_begin (guint id);
void gtorch_composite_end (const GTorchOpClass *former, gboolean ok, GError **error);
/* The standard shape functions. */
gboolean gtorch_shape_pointwise (GTorchOpCall *call, GError **error);
gboolean gtorch_shape_reduce (GTorchOpCall *call, GError **error);
gboolean gtorch_shape_same (GTorchOpCall *call, GError **error); /* as input 0 */

/* --- the launcher --- */
gboolean gtorch_launch (GTorchOpCall *call, GError **error);
/* Fills in call->seed and call->counter from the call's generator or the device's. Does nothing in a
 * capture: each replay reserves anew. */
void gtorch_random_reserve (GTorchOpCall *call);
/* Before the shape function of an operation that reads values. */
gboolean gtorch_launch_sync_inputs (GTorchOpCall *call, GError **error);
/* An output, in the graph's memory while the current stream captures. */
GTorchImpl *gtorch_launch_new_output (GTorchOpCall *call, guint dtype, const gint64 *shape,
                                      guint n_dims, GError **error);

/* --- autograd's part of a call (autograd/) --- */
gboolean gtorch_autograd_look_for_wanted (GTorchImpl *const *inputs, guint n_inputs);
/* Is any input wanting a gradient, with the grad mode on? */
static inline gboolean
gtorch_autograd_wanted (GTorchImpl *const *inputs, guint n_inputs)
{
  guint i;

  for (i = 0; i < n_inputs; i++)
    if (inputs[i] != NULL && inputs[i]->autograd != NULL)
      return gtorch_autograd_look_for_wanted (inputs + i, n_inputs - i);
  return FALSE;
}
/* After a successful call: gives the outputs their grad_fn. */
gboolean gtorch_autograd_record (GTorchOpCall *call, GError **error);

G_END_DECLS
