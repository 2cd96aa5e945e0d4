import { runConnector } from '../kit';
import { defineStripe } from './definition';

runConnector(defineStripe());
