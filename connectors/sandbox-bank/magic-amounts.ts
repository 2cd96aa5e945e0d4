/**
 * Amounts that make the sandbox bank misbehave, in minor units of any currency: what a merchant
 * wants to have seen before going live, and would not charge by accident.
 */
export const MAGIC_AMOUNTS = {
  66601: {
    behaviour: 'slow_session',
    description:
      'The bank takes 8 seconds to open its page. The payment is created with status `created`, ' +
      'and its `redirect_url` works meanwhile.',
  },
  66602: {
    behaviour: 'declined_at_open',
    description: 'The bank refuses the payment before the customer sees its page: `failed`.',
  },
  66603: {
    behaviour: 'never_settles',
    description: 'After the approval no settlement comes: the payment stays `authorized`.',
  },
  66604: {
    behaviour: 'duplicate_out_of_order',
    description:
      'After the approval `settled` comes first, `authorized` a second later, then both once ' +
      'more; also with autoplay off. The payment ends `settled`, each event is sent once.',
  },
  66605: {
    behaviour: 'fails_after_approval',
    description:
      'Three seconds after the approval the bank takes it back: `authorized`, then `failed`; ' +
      'also with autoplay off.',
  },
} as const satisfies Record<number, { behaviour: string; description: string }>;

type MagicAmount = keyof typeof MAGIC_AMOUNTS;

export type Behaviour = 'normal' | (typeof MAGIC_AMOUNTS)[MagicAmount]['behaviour'];

/** @param amount minor units */
export function behaviourOf(amount: number): Behaviour {
  return isMagic(amount) ? MAGIC_AMOUNTS[amount].behaviour : 'normal';
}

function isMagic(amount: number): amount is MagicAmount {
  return Object.hasOwn(MAGIC_AMOUNTS, amount);
}
