/** Amounts at which the sandbox misbehaves, each with its words for merchants. */
export type MagicTable<Behaviour extends string = string> = Readonly<
  Record<number, { behaviour: Behaviour; description: string }>
>;

/** Behaviour at an amount; `otherwise` at one that the table does not have. */
export function behaviourIn<Behaviour extends string, Usual extends string>(
  table: MagicTable<Behaviour>,
  amount: number,
  otherwise: Usual,
): Behaviour | Usual {
  return table[amount]?.behaviour ?? otherwise;
}
