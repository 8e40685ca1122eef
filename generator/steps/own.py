# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The arguments of the optimizers that are no formulas, and so no rows, for Python and for JavaScript. none: what a
property has for PyTorch's None."""

NONE = -2147483648  # GTORCH_NONE
NONE_DOUBLE = 6.180339887498948e301  # GTORCH_NONE_DOUBLE


def argument(name, default=None, form=None, names=None, **more):
    return {'name': name, 'required': False, 'default': default, 'form': form,
            'names': [] if form else names or [name], **more}


OPTIMIZERS = [
    {'name': 'Adafactor', 'positional': 5, 'args': [
        argument('lr', 1e-2), argument('beta2_decay', -0.8),
        argument('eps', [None, 1e-3], names=['eps1', 'eps2'], none=NONE_DOUBLE), argument('d', 1.0),
        argument('weight_decay', 0.0), argument('foreach', form='form'), argument('maximize', False),
    ]},
    {'name': 'LBFGS', 'positional': 7, 'args': [
        argument('lr', 1.0), argument('max_iter', 20), argument('max_eval', None, none=NONE),
        argument('tolerance_grad', 1e-7), argument('tolerance_change', 1e-9), argument('history_size', 100),
        argument('line_search_fn', None, none='none'), argument('maximize', False),
    ]},
    {'name': 'Muon', 'positional': 8, 'args': [
        argument('lr', 1e-3), argument('weight_decay', 0.1), argument('momentum', 0.95), argument('nesterov', True),
        argument('ns_coefficients', [3.4445, -4.775, 2.0315], names=['ns_a', 'ns_b', 'ns_c']), argument('eps', 1e-7),
        argument('ns_steps', 5), argument('adjust_lr_fn', None, none='original'),
    ]},
]
