/**
 * ISO 4217 codes (amendment 180, 2026) by minor-unit digits; `Intl` differs for IQD, LBP and UGX.
 * Codes without a minor unit are not accepted.
 */
const CODES: Readonly<Record<number, string>> = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  2: `AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD
    CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP
    GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK
    LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO
    NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS
    SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST
    XAD XCD XCG YER ZAR ZMW ZWG`,
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
};
/** @see docs/api.md#money-json-text */
export const MINOR_UNIT_DIGITS: ReadonlyMap<string, number> = new Map(
  Object.entries(CODES).flatMap(([digits, codes]) =>
    codes.split(/\s+/).map((code): [string, number] => [code, Number(digits)]),
  ),
);

export const CURRENCIES: readonly string[] = Object.freeze([...MINOR_UNIT_DIGITS.keys()].sort());

export function isCurrency(code: string): boolean {
  return MINOR_UNIT_DIGITS.has(code);
}
