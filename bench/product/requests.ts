export const PAYMENT = {
  method: 'ideal',
  amount: 1050,
  currency: 'EUR',
  country: 'NL',
  success_url: 'https://shop.example/thanks',
  error_url: 'https://shop.example/sorry',
  reference: 'order-1001',
  customer: { email: 'jan@example.com', first_name: 'Jan', last_name: 'Jansen' },
  metadata: { cart: '8812', channel: 'web' },
};

export const RECIPIENT = {
  type: 'bank_account',
  first_name: 'Jan',
  last_name: 'Jansen',
  iban: 'NL91ABNA0417164300',
  address_line1: 'Damrak 1',
  city: 'Amsterdam',
  postal_code: '1012 LG',
};

export const PAYOUT = {
  method: 'sepa_instant',
  amount: 1050,
  currency: 'EUR',
  reference: 'winnings-1001',
  metadata: { game: '8812' },
};
