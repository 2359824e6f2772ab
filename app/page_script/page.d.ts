declare const GLOSSARY: [told: string, forms: string[]][];
/** Tells a version of the server from others, and says nothing else of it. */
declare const SERVER: string;
