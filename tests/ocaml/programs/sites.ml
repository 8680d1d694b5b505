(* Allocation points of many kinds: plain, inlined, in functors, closures, objects, local functions,
   partial applications, over several lines. `sites.exe self` samples them by itself and prints
   what Printexc says of every frame; recorded without it, the trace must say the same. *)

module type Shape = sig
  val name : string
  val size : int
end

module Make (S : Shape) = struct
  let label suffix = S.name ^ suffix
  let build () = Array.make S.size (label "!")
end

module Square = Make (struct
  let name = "square"
  let size = 9
end)

class counter start =
  object
    val mutable value = start
    method next = value <- List.length [ value; start; value ] + value; Some value
  end

let[@inline always] pair a b = (a, Sys.opaque_identity b)
let[@inline always] nested x = pair (Sys.opaque_identity [ x ]) x
let[@inline never] add x y z = [| x; y; z; x |]

let several_lines x =
  Sys.opaque_identity
    (Some
       ( x,
         [ x; x + 1 ],
         ref x ))

let rec sum tree = function
  | 0 -> tree
  | n ->
      let left = sum (string_of_int n :: tree) (n - 1) in
      "node" :: left

let ( |+| ) a b = Bytes.cat a b

let work () =
  let keep x = ignore (Sys.opaque_identity x) in
  for i = 1 to 40 do
    let local j = (i, j, Sys.opaque_identity (float_of_int j)) in
    keep (local (i * 2));
    keep (nested i);
    keep (Square.build ());
    keep (List.map (add i 2) [ i; 3 ]);
    keep (several_lines i);
    keep ((new counter i)#next);
    keep (sum [] 5);
    keep (Bytes.of_string "abcdefgh" |+| Bytes.make 20 'x');
    keep (Printf.sprintf "%d-%s" i "text");
    keep (lazy (string_of_int i));
    keep (Lazy.force (lazy (string_of_int (Sys.opaque_identity i))));
    keep (Hashtbl.hash (string_of_int i))
  done
[@@inline never]

(* The frames of a stack, outermost first. *)
let describe callstack =
  let frame slot =
    match (Printexc.Slot.name slot, Printexc.Slot.location slot) with
    | Some name, Some { filename; line_number; start_char; end_char; _ } ->
        Some (Printf.sprintf "%s %s:%d:%d-%d" name filename line_number start_char end_char)
    | _ -> None
  in
  let slots = Option.value (Printexc.backtrace_slots callstack) ~default:[||] in
  String.concat "; " (List.filter_map frame (List.rev (Array.to_list slots)))

let () =
  let self = Array.length Sys.argv > 1 in
  let stacks = Hashtbl.create 100 in
  let note (info : Gc.Memprof.allocation) =
    Hashtbl.replace stacks (describe info.callstack) ();
    None
  in
  let tracker = { Gc.Memprof.null_tracker with alloc_minor = note; alloc_major = note } in
  if self then ignore (Gc.Memprof.start ~sampling_rate:1. ~callstack_size:max_int tracker);
  work ();
  if self then Gc.Memprof.stop ();
  Hashtbl.iter (fun stack () -> print_endline stack) stacks
