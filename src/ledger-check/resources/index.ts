import { type ResourceCheck, resourceCheck } from '../rule';
import { CRYPTO_PAYMENTS } from './crypto-payments';
import { CRYPTO_SETTLEMENTS } from './crypto-settlements';
import { compareDisputes, DISPUTES } from './disputes';
import { PAYMENTS } from './payments';
import { PAYOUTS } from './payouts';
import { comparePayments, compareRefunds, REFUNDS } from './refunds';

export const RESOURCE_CHECKS: readonly ResourceCheck[] = [
  resourceCheck('payment', PAYMENTS, comparePayments),
  resourceCheck('refund', REFUNDS, compareRefunds),
  resourceCheck('payout', PAYOUTS),
  resourceCheck('dispute', DISPUTES, compareDisputes),
  resourceCheck('crypto_payment', CRYPTO_PAYMENTS),
  resourceCheck('crypto_settlement', CRYPTO_SETTLEMENTS),
];
