/** Amounts at which the sandbox misbehaves, each with its words for merchants. */
export type MagicTable<Behavior extends string = string> = Readonly<
  Record<number, { behaviour: Behavior; description: string }>
>;

/** Behaviour at an amount; `otherwise` at one that the table does not have. */
export function lookUpBehavior<Behavior extends string, Usual extends string>(
  table: MagicTable<Behavior>,
  amount: number,
  otherwise: Usual,
): Behavior | Usual {
  return table[amount]?.behaviour ?? otherwise;
}
