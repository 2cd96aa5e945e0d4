/** Rows of the benchmark, in the order in which they are measured; `--only` names some of them. */
export const ROWS = {
  payments: 'payments of the product beside those of the floor: the ratio',
  refunds: "refunds of the product, beside the floor's payments",
  payouts: "payouts of the product, beside the floor's payments",
  deliveries: "webhooks alone, without a payment that moves, beside the floor's posts",
  merchants: 'one merchant alone against ten who share the same payments',
  cold: 'callbacks of payments that no worker remembers, against ones that it does',
} as const;

export type RowName = keyof typeof ROWS;
export const ROW_NAMES: readonly RowName[] = Object.keys(ROWS).filter(isRowName);

export function isRowName(name: string): name is RowName {
  return Object.hasOwn(ROWS, name);
}
