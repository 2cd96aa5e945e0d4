/** Builds a body with changes, which every rule accepts without them. */
const withChanges =
  <Body extends object>(body: Body) =>
  (changes: Record<string, unknown> = {}) => ({ ...body, ...changes });

export const cardRecipient = withChanges({
  type: 'card',
  first_name: 'Ada',
  last_name: 'Lovelace',
  card_number: '4111111111111111',
  expiry_month: '12',
  expiry_year: '2099',
  date_of_birth: '1985-12-10',
  address_line1: '12 St James Square',
  city: 'London',
  postal_code: 'SW1Y 4JH',
});

/** In the SEPA area. */
export const bankRecipient = withChanges({
  type: 'bank_account',
  first_name: 'Grace',
  last_name: 'Hopper',
  iban: 'NL91ABNA0417164300',
  address_line1: 'Keizersgracht 1',
  city: 'Amsterdam',
  postal_code: '1015 CN',
});

/** In the United Kingdom, without an IBAN. */
export const ukRecipient = withChanges({
  type: 'bank_account',
  first_name: 'Alan',
  last_name: 'Turing',
  sort_code: '601613',
  account_number: '31926819',
});
