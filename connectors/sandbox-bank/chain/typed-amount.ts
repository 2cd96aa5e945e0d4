/**
 * Reads a decimal number of whole coins, as a person types it; undefined where it is none, is zero,
 * or has more digits than the asset.
 * @returns smallest units
 */
export function typedUnits(text: string, decimals: number): string | undefined {
  const [, whole = '', fraction = ''] = /^(\d{1,12})(?:[.,](\d{1,18}))?$/.exec(text.trim()) ?? [];
  if (whole === '' || fraction.length > decimals) return undefined;
  const units = BigInt(whole + fraction.padEnd(decimals, '0'));
  return units > 0n ? String(units) : undefined;
}
