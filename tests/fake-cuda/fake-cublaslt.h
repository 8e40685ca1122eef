/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* What cublasLtMatmul was asked for last. */
typedef struct
{
  int compute;        /* cublasComputeType_t */
  unsigned n_plans;   /* descriptions of products made so far */
  unsigned n_present; /* of these, not destroyed yet */
  unsigned n_products;
} FakeCublasLt;

extern FakeCublasLt fake_cublaslt;
