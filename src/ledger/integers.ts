import { Decimal128, Long } from 'mongodb';
import { parseBookCurrency } from '../domain/crypto/assets';

export type StoredInteger = Long | Decimal128;

/** Converts to 64 bits for money, to 34 digits for an asset, so that sums of a book stay exact. */
export function toStoredInteger(amount: number | bigint, currency: string): StoredInteger {
  if (parseBookCurrency(currency) !== undefined) return Decimal128.fromString(String(amount));
  return typeof amount === 'bigint' ? Long.fromBigInt(amount) : Long.fromNumber(amount);
}

/** @returns undefined for any other value */
export function toBigInt(value: unknown): bigint | undefined {
  if (typeof value === 'bigint') return value;
  if (value instanceof Decimal128) {
    const text = value.toString();
    return /^-?\d+$/.test(text) ? BigInt(text) : undefined;
  }
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : undefined;
}
