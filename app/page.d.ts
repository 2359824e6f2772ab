declare const GLOSSARY: [told: string, forms: string[]][];
