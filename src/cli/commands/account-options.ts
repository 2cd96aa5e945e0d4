import { InvalidArgumentError } from 'commander';
import {
  isPaymentMethodId,
  PAYMENT_METHOD_IDS,
  type PaymentMethodId,
} from '../../domain/catalogue';
import { isCurrency } from '../../domain/currencies';
import { feeNameOf } from '../../domain/payout-fees';
import { isRailId, RAIL_IDS, type RailId } from '../../domain/rails';
import type { AccountChange } from '../account';

const NAME_LENGTH_MAX = 100;

type MethodOrRail = PaymentMethodId | RailId;

/** Collects methods and rails. @throws InvalidArgumentError */
export function collectMethod(text: string, before: MethodOrRail[] = []): MethodOrRail[] {
  if (isPaymentMethodId(text) || isRailId(text)) {
    return before.includes(text) ? before : [...before, text];
  }
  throw new InvalidArgumentError(`Allowed: ${[...PAYMENT_METHOD_IDS, ...RAIL_IDS].join(', ')}.`);
}

type Fees = NonNullable<AccountChange['payoutFee']>;

/** Collects fees of payouts. @throws InvalidArgumentError */
export function collectFee(text: string, before: Fees = []): Fees {
  const [rail = '', minor = '', ...more] = text.split('=');
  const name = feeNameOf(rail);
  const isFee = more.length === 0 && /^(\d{1,11}|off)$/.test(minor);
  const isNew = !before.some((other) => other.name === name);
  if (name !== undefined && isFee && isNew) {
    return [...before, { name, fee: minor === 'off' ? null : Number(minor) }];
  }
  throw new InvalidArgumentError(
    `It must be RAIL=MINOR, each rail once: one of ${RAIL_IDS.join(', ')}, or one in a currency that ` +
      'it pays out, as in card_payout:JPY, and an integer from 0 to 99999999999, in minor units, or off.',
  );
}

type Limits = NonNullable<AccountChange['payoutLimit']>;

/** Collects limits of payouts. @throws InvalidArgumentError */
export function collectLimit(text: string, before: Limits = {}): Limits {
  const [currency = '', minor = '', ...more] = text.split('=');
  const isLimit = more.length === 0 && /^(\d{1,11}|off)$/.test(minor);
  if (isCurrency(currency) && isLimit && before[currency] === undefined) {
    return { ...before, [currency]: minor === 'off' ? null : Number(minor) };
  }
  throw new InvalidArgumentError(
    'It must be CURRENCY=MINOR, each currency once, with an integer from 0 to 99999999999 in minor ' +
      'units, or CURRENCY=off.',
  );
}

/** Reads the name of a merchant. @throws InvalidArgumentError */
export function parseName(text: string): string {
  const name = text.trim();
  if (name !== '' && [...name].length <= NAME_LENGTH_MAX) return name;
  throw new InvalidArgumentError(`It must have 1 to ${NAME_LENGTH_MAX} characters.`);
}
