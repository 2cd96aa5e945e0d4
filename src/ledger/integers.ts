import { Decimal128, Long } from 'mongodb';
import { parseBookCurrency } from '../domain/crypto/assets';

/** Integer as MongoDB keeps it. */
export type StoredInteger = Long | Decimal128;

/**
 * Writes an amount for a book: 64 bits for money, and 34 digits for a coin, whose smallest unit may
 * be the 10^18th part. Each book holds one of the two, so that its sums stay exact.
 */
export function toStoredInteger(amount: number | bigint, currency: string): StoredInteger {
  if (parseBookCurrency(currency) !== undefined) return Decimal128.fromString(String(amount));
  return typeof amount === 'bigint' ? Long.fromBigInt(amount) : Long.fromNumber(amount);
}

/** Reads an integer of any size that MongoDB keeps exactly; undefined for any other value. */
export function toBigInt(value: unknown): bigint | undefined {
  if (typeof value === 'bigint') return value;
  if (value instanceof Decimal128) {
    const text = value.toString();
    return /^-?\d+$/.test(text) ? BigInt(text) : undefined;
  }
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : undefined;
}
