// For haxe: classes, generics, enums and closures, compiled to JavaScript.
using Lambda;

enum Tree<T> {
	Leaf;
	Node(left:Tree<T>, value:T, right:Tree<T>);
}

class Trees {
	public static function insert<T>(tree:Tree<T>, value:T, compare:(T, T) -> Int):Tree<T> {
		return switch (tree) {
			case Leaf: Node(Leaf, value, Leaf);
			case Node(left, other, right) if (compare(value, other) < 0): Node(insert(left, value, compare), other, right);
			case Node(left, other, right): Node(left, other, insert(right, value, compare));
		}
	}

	public static function toList<T>(tree:Tree<T>):Array<T> {
		return switch (tree) {
			case Leaf: [];
			case Node(left, value, right): toList(left).concat([value]).concat(toList(right));
		}
	}
}

abstract Money(Int) from Int to Int {
	@:op(A + B) static function add(a:Money, b:Money):Money;

	public function toString()
		return '${this / 100}';
}

class Main {
	static function main() {
		var words = "a program that is compiled with all of the standard library".split(" ");
		var counts = new Map<String, Int>();
		for (word in words)
			counts[word] = (counts.exists(word) ? counts[word] : 0) + word.length;
		var tree = words.fold((word, tree) -> Trees.insert(tree, word, Reflect.compare), Leaf);
		var total:Money = counts.fold((n, sum:Money) -> sum + n, 0);
		trace(Trees.toList(tree).join(" "), total, haxe.Json.stringify({counts: [for (k => v in counts) k + v]}));
	}
}
