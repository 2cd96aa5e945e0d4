import { isBreachedPassword } from '../../encryption/breached-passwords';
import { isLongEnough, PASSWORD_LENGTH } from '../../encryption/password';

export function findPasswordFault(password: string): string | undefined {
  const { min, max } = PASSWORD_LENGTH;
  if (!isLongEnough(password)) return `Choose ${min} to ${max} characters.`;
  if (!isBreachedPassword(password)) return undefined;
  return 'This password is known from breaches of other services. Choose another one.';
}
