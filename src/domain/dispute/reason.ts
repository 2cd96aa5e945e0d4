/** Reasons in words, with the codes of acquirers and schemes that mean them. */
const REASONS: readonly (readonly [words: string, codes: readonly string[]])[] = [
  [
    'The customer says that somebody else paid',
    [
      ...['fraudulent', '10.1', '10.2', '10.3', '10.4', '10.5'],
      ...['4837', '4840', '4849', '4870', '4871', 'F10', 'F14', 'F24', 'F29', 'F30', 'F31'],
    ],
  ],
  ['The customer does not know the payment', ['unrecognized', '4863']],
  [
    'The customer did not receive goods or services',
    ['product_not_received', '13.1', '13.9', '4855', 'C08'],
  ],
  [
    'Goods or services were not as described, or were defective',
    ['product_unacceptable', '13.3', '13.4', '13.5', 'C31', 'C32'],
  ],
  [
    'The customer waits for a refund',
    ['credit_not_processed', '13.6', '13.7', '4860', 'C02', 'C04', 'C05', 'C18'],
  ],
  ['The customer had ended the subscription', ['subscription_canceled', '13.2', '4841', 'C28']],
  [
    'The customer paid twice, or in another way, too',
    ['duplicate', '12.6', '12.6.1', '12.6.2', '4834', 'C14', 'P08'],
  ],
  [
    'The amount, the currency or the account was wrong',
    [
      ...['incorrect_account_details', '12.2', '12.3', '12.4', '12.5', '12.7', '4831', '4846'],
      ...['P01', 'P03', 'P04', 'P05', 'P23'],
    ],
  ],
  [
    'The payment was not authorized by the bank, or came too late',
    ['11.1', '11.2', '11.3', '12.1', '4807', '4808', '4812', '4842', 'A01', 'A02', 'A08', 'P07'],
  ],
  ['The customer did not allow the debit', ['debit_not_authorized']],
  ['The customer asked the bank for the money', ['customer_initiated']],
  ['There was not enough money on the account', ['insufficient_funds']],
  ['The bank cannot process the payment', ['bank_cannot_process', 'check_returned']],
  ['The payment broke a rule of the scheme', ['noncompliant']],
  ['The customer disputes the purchase', ['general', '4853', '4854', '13.8']],
];

const WORDS = new Map(REASONS.flatMap(([words, codes]) => codes.map((code) => [code, words])));

/** Says a scheme's code in words, where they are known, and the code. */
export function explainReason(code: string | null): string {
  if (code === null) return 'The bank gave no reason';
  const words = WORDS.get(code);
  return words === undefined ? `The bank’s code ${code}` : `${words} (${code})`;
}
